// Sets of texts that share their parts: a set with one more text costs what the text does, however many came before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "segmented.hpp"
#include "tables.hpp"

namespace maskwright {

// A set is a node of a trie whose edges are texts; nodes are interned, so equal sets are one number.  The empty set is 0.
// Each text has a *note*, a number above 0; sets with the same texts are equal only if the notes are, too.
// A *place* in a set is a node and how many bytes of its label were read: it stands for those texts that go on from there.
class TextSets {
public:
    TextSets() { nodes_.push_back({}); }

    // The number of a text, and the text of a number.
    int32_t name(const std::string &text) {
        int32_t id = name_ids_.find(text);
        if (id < 0) {
            id = static_cast<int32_t>(names_.size());
            names_.push_back({names_text_.size(), text.size()});
            names_text_ += text;
            name_ids_.insert(text, id);
        }
        return id;
    }
    std::string named(int32_t name) const {
        return names_text_.substr(names_[name].first, names_[name].second);
    }

    // The set with one more text, or with another note of it.
    int32_t with(int32_t set, const std::string &text, int32_t note = 1) {
        return set == 0 ? intern(text, note, {}) : with(set, text.data(), text.size(), note);
    }

    // The set of some texts, which are sorted, and their notes: nothing else is made on the way.
    int32_t of(const std::vector<std::pair<std::string, int32_t>> &texts) {
        return texts.empty() ? 0 : of(texts, 0, texts.size(), 0);
    }

    // How many texts a set has; of any place inside its label, too.
    int32_t count(int32_t set) const { return nodes_[set].count; }

    // Whether a text ends at a place.
    bool ends(int32_t set, int32_t at) const { return note(set, at) != 0; }

    // The note of the text that ends at a place, or 0.
    int32_t note(int32_t set, int32_t at) const { return at == nodes_[set].label.size ? nodes_[set].note : 0; }

    // Go on from a place by a byte; false: no text does.
    bool step(int32_t &set, int32_t &at, uint8_t byte) const {
        const Node &node = nodes_[set];
        if (at < node.label.size) {
            if (static_cast<uint8_t>(node.label.data[at]) != byte) return false;
            ++at;
            return true;
        }
        const size_t i = child_from(node, byte);
        if (i == node.children || node.letters()[i] != byte) return false;
        set = node.first[i];
        at = 1;
        return true;
    }

    // The bytes that texts go on with from a place, ascending.
    void next(int32_t set, int32_t at, std::vector<uint8_t> &out) const {
        const Node &node = nodes_[set];
        out.clear();
        if (at < node.label.size) {
            out.push_back(static_cast<uint8_t>(node.label.data[at]));
            return;
        }
        out.insert(out.end(), node.letters(), node.letters() + node.children);
    }

    // What is left of all texts behind a place.
    void rests(int32_t set, int32_t at, std::vector<std::string> &out) const {
        std::vector<std::pair<int32_t, std::string>> work;
        out.clear();
        work.push_back({set, nodes_[set].label.text().substr(at)});
        while (!work.empty()) {
            const auto [id, before] = work.back();
            work.pop_back();
            const Node &node = nodes_[id];
            if (node.note) out.push_back(before);
            for (size_t i = node.children; i-- > 0;) {
                const int32_t child = node.first[i];
                work.push_back({child, before + nodes_[child].label.text()});
            }
        }
    }

    // What a set is made of: other sets, each behind the label, and the note of the text that ends there.
    size_t children(int32_t set) const { return nodes_[set].children; }
    int32_t child(int32_t set, size_t i) const { return nodes_[set].first[i]; }
    int32_t own_note(int32_t set) const { return nodes_[set].note; }

    // The same set among those of another object, with a note there; `known`: what it is made of, there.
    int32_t moved(int32_t set, int32_t note, TextSets &to, const Renumbered &known) const {
        const Node &node = nodes_[set];
        std::vector<int32_t> children;
        for (size_t i = 0; i < node.children; ++i) children.push_back(known.find(node.first[i]));
        return to.intern(node.label.text(), note, children);
    }

    // What it takes on the heap.
    size_t bytes() const {
        return nodes_.bytes() + children_.bytes() + text_.bytes() + ids_.bytes() + name_ids_.bytes() +
               names_.capacity() * sizeof(names_[0]) + names_text_.capacity();
    }

private:
    struct Label {
        const char *data = nullptr;
        int32_t size = 0;

        std::string text() const { return size ? std::string(data, size) : std::string(); }
    };
    struct Node {
        Label label;
        int32_t note = 0;  // of the text that ends behind the label; 0: none does
        int32_t count = 0;
        const int32_t *first = nullptr;  // of its children, by their first byte
        uint32_t children = 0;

        // By which the children begin: behind the label, so that who looks for one of many reads no other.
        const uint8_t *letters() const { return reinterpret_cast<const uint8_t *>(label.data) + label.size; }
    };

    static size_t child_from(const Node &node, uint8_t byte) {
        return std::lower_bound(node.letters(), node.letters() + node.children, byte) - node.letters();
    }

    // What is behind `from` of texts [first, last), which are alike up to there.
    int32_t of(const std::vector<std::pair<std::string, int32_t>> &texts, size_t first, size_t last, size_t from) {
        const std::string &low = texts[first].first, &high = texts[last - 1].first;
        size_t at = from;
        while (at < low.size() && at < high.size() && low[at] == high[at]) ++at;
        const int32_t note = at == low.size() ? texts[first++].second : 0;
        std::vector<int32_t> children;
        while (first < last) {
            size_t next = first + 1;
            while (next < last && texts[next].first[at] == texts[first].first[at]) ++next;
            children.push_back(of(texts, first, next, at));
            first = next;
        }
        return intern(low.substr(from, at - from), note, children);
    }

    int32_t with(int32_t set, const char *text, size_t size, int32_t note) {
        const Node node = nodes_[set];
        const std::string label = node.label.text();
        std::vector<int32_t> children(node.first, node.first + node.children);
        size_t common = 0;
        while (common < size && common < label.size() && text[common] == label[common]) ++common;
        if (common < label.size()) {
            // The label parts here.
            std::vector<int32_t> parts{intern(label.substr(common), node.note, children)};
            if (common < size) {
                const int32_t rest = intern(std::string(text + common, size - common), note, {});
                parts.insert(static_cast<uint8_t>(text[common]) < static_cast<uint8_t>(label[common]) ? parts.begin() : parts.end(), rest);
            }
            return intern(label.substr(0, common), common == size ? note : 0, parts);
        }
        if (common == size) return node.note == note ? set : intern(label, note, children);
        const size_t i = child_from(node, static_cast<uint8_t>(text[common]));
        if (i < children.size() && node.letters()[i] == static_cast<uint8_t>(text[common])) {
            children[i] = with(children[i], text + common, size - common, note);
        } else {
            children.insert(children.begin() + i, intern(std::string(text + common, size - common), note, {}));
        }
        return intern(label, node.note, children);
    }

    int32_t intern(const std::string &label, int32_t note, const std::vector<int32_t> &children) {
        std::string key(reinterpret_cast<const char *>(&note), sizeof note);
        key.append(reinterpret_cast<const char *>(children.data()), children.size() * sizeof(int32_t));
        key += label;
        // Children count, so that none of their bytes are taken for the label's.
        const int32_t counted = static_cast<int32_t>(children.size());
        key.append(reinterpret_cast<const char *>(&counted), sizeof counted);
        int32_t id = ids_.find(key);
        if (id >= 0) return id;
        id = static_cast<int32_t>(nodes_.size());
        Node node;
        std::string text = label;
        for (const int32_t child : children) text += *nodes_[child].label.data;
        node.label.data = text_.add(text.data(), text.size());
        node.label.size = static_cast<int32_t>(label.size());
        node.note = note;
        node.count = note != 0;
        for (const int32_t child : children) node.count += nodes_[child].count;
        node.first = children_.add(children.data(), children.size());
        node.children = static_cast<uint32_t>(children.size());
        nodes_.push_back(node);
        ids_.insert(key, id);
        return id;
    }

    SegmentedVector<Node> nodes_;
    Arena<int32_t> children_;
    Arena<char> text_;  // of labels
    Interner ids_;
    std::vector<std::pair<size_t, size_t>> names_;
    std::string names_text_;
    Interner name_ids_;
};

}  // namespace maskwright
