// Prints each line of documents.jsonl as Jackson does; one JSON object a line, as in golden.jsonl.
//
//     java -cp jackson-annotations.jar:jackson-core.jar:jackson-databind.jar Print.java < documents.jsonl

import com.fasterxml.jackson.core.PrettyPrinter;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

public class Print {
    static final ObjectMapper PLAIN = new ObjectMapper();
    static final ObjectMapper ESCAPED =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    static void emit(String printer, String text) throws Exception {
        Map<String, String> line = new LinkedHashMap<>();
        line.put("printer", printer);
        line.put("text", text);
        OUT.println(ESCAPED.writeValueAsString(line));
    }

    static PrettyPrinter pretty(String lineBreak) {
        return new DefaultPrettyPrinter().withObjectIndenter(new DefaultIndenter("  ", lineBreak));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Object value = PLAIN.readValue(line, Object.class);
            emit("Jackson", PLAIN.writeValueAsString(value));
            emit("Jackson, escaped", ESCAPED.writeValueAsString(value));
            emit("Jackson DefaultPrettyPrinter", PLAIN.writer(pretty("\n")).writeValueAsString(value));
            emit("Jackson DefaultPrettyPrinter, Windows", PLAIN.writer(pretty("\r\n")).writeValueAsString(value));
        }
    }
}
