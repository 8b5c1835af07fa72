// Prints each line of documents.jsonl as Go does; one JSON object a line, as in golden.jsonl.
//
//	go run print.go < documents.jsonl
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

func emit(printer string, text []byte) {
	line, _ := json.Marshal(map[string]string{"printer": printer, "text": string(text)})
	fmt.Println(string(line))
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var value any
		if err := json.Unmarshal(lines.Bytes(), &value); err != nil {
			panic(err)
		}
		compact, _ := json.Marshal(value)
		emit("Go Marshal", compact)
		blanks, _ := json.MarshalIndent(value, "", "  ")
		emit("Go MarshalIndent, blanks", blanks)
		tabs, _ := json.MarshalIndent(value, "", "\t")
		emit("Go MarshalIndent, tabs", tabs)
		var raw bytes.Buffer
		encoder := json.NewEncoder(&raw)
		encoder.SetEscapeHTML(false)
		encoder.Encode(value)
		emit("Go without HTML escapes", bytes.TrimSuffix(raw.Bytes(), []byte("\n")))
	}
}
