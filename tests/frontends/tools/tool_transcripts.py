"""What models of each family write, in the format that their documentation or chat template has: get_weather(city="Rome", days=2), and
after it get_time(zone="CET")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {**parameters, "additionalProperties": False}},
    }


TOOLS = [
    tool("get_weather", city={"type": "string"}, days={"type": "integer", "minimum": 1, "maximum": 14}),
    tool("get_time", zone={"type": "string", "enum": ["CET", "UTC"]}),
]
CALLS = [("get_weather", {"city": "Rome", "days": 2}), ("get_time", {"zone": "CET"})]


@dataclass(frozen=True)
class Transcript:
    """``one`` call, ``two`` calls (empty where the family makes one at a time), a block of ``thinking`` with all that
    belongs to it, and an answer in plain ``text``."""

    one: str
    two: str = ""
    thinking: str = ""
    text: str = "It rains [in Rome] today."


WEATHER, TIME = '{"city": "Rome", "days": 2}', '{"zone": "CET"}'
NAMED = f'{{"name": "get_weather", "arguments": {WEATHER}}}'
NAMED_TIME = f'{{"name": "get_time", "arguments": {TIME}}}'
THOUGHT = "<think>\nThe user wants weather.\n</think>\n\n"


def joined(first: str, separator: str, second: str, begin: str = "", end: str = "") -> tuple[str, str]:
    return begin + first + end, begin + first + separator + second + end


HERMES = joined(f"<tool_call>\n{NAMED}\n</tool_call>", "\n", f"<tool_call>\n{NAMED_TIME}\n</tool_call>")
QWEN_XML = joined(
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
    "</function>\n</tool_call>",
    "\n",
    "<tool_call>\n<function=get_time>\n<parameter=zone>\nCET\n</parameter>\n</function>\n</tool_call>",
)
PYTHONIC = joined('get_weather(city="Rome", days=2)', ", ", "get_time(zone='CET')", "[", "]")
LIST = joined(NAMED, ", ", NAMED_TIME, "[", "]")
MISTRAL = joined(f"[TOOL_CALLS]get_weather[ARGS]{WEATHER}", "", f"[TOOL_CALLS]get_time[ARGS]{TIME}")
DEEPSEEK = joined(
    f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{WEATHER}\n```<｜tool▁call▁end｜>",
    "\n",
    f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{TIME}\n```<｜tool▁call▁end｜>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
)
TRANSCRIPTS = {
    "hermes": Transcript(*HERMES),
    "qwen3": Transcript(*HERMES, THOUGHT),
    "qwen3_coder": Transcript(*QWEN_XML),
    "qwen3_5": Transcript(*QWEN_XML, THOUGHT),
    "seed_oss": Transcript(
        *(text.replace("tool_call>", "seed:tool_call>") for text in QWEN_XML),
        "<seed:think>Weather.</seed:think>\n",
    ),
    "llama3_json": Transcript(
        *joined(
            f'{{"name": "get_weather", "parameters": {WEATHER}}}',
            "; ",
            f'{{"name": "get_time", "parameters": {TIME}}}',
        )
    ),
    "llama_function": Transcript(
        *joined(f"<function=get_weather>{WEATHER}</function>", "", f"<function=get_time>{TIME}</function>")
    ),
    "llama_pythonic": Transcript(*PYTHONIC),
    "gemma3": Transcript(*PYTHONIC),
    "mistral_v3": Transcript(*(f"[TOOL_CALLS] {text}" for text in LIST)),
    "mistral_v11": Transcript(*MISTRAL),
    "mistral_v13": Transcript(*MISTRAL, "[THINK]The user wants weather.[/THINK]"),
    "deepseek_v3": Transcript(*DEEPSEEK),
    "deepseek_r1": Transcript(*DEEPSEEK, THOUGHT),
    "deepseek_v3_1": Transcript(
        *joined(
            f"<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{WEATHER}<｜tool▁call▁end｜>",
            "",
            f"<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{TIME}<｜tool▁call▁end｜>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
        ),
        "<think>Weather.</think>",
    ),
    "deepseek_v3_2": Transcript(
        *joined(
            '<｜DSML｜invoke name="get_weather">\n'
            '<｜DSML｜parameter name="city" string="true">Rome</｜DSML｜parameter>\n'
            '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n',
            "",
            '<｜DSML｜invoke name="get_time">\n<｜DSML｜parameter name="zone" string="true">CET</｜DSML｜parameter>\n'
            "</｜DSML｜invoke>\n",
            "<｜DSML｜function_calls>\n",
            "</｜DSML｜function_calls>",
        ),
        "<think>Weather.</think>",
    ),
    "harmony": Transcript(
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>" + WEATHER + "<|call|>",
        "",
        "<|channel|>analysis<|message|>The user wants weather.<|end|><|start|>assistant",
        "<|channel|>final<|message|>It rains in Rome today.<|return|>",
    ),
    "glm4_5": Transcript(
        *joined(
            "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
            "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
            "\n",
            "<tool_call>get_time\n<arg_key>zone</arg_key>\n<arg_value>CET</arg_value>\n</tool_call>",
        ),
        "<think>Weather.</think>\n",
    ),
    "glm4_7": Transcript(
        *joined(
            "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value>"
            "<arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
            "",
            "<tool_call>get_time<arg_key>zone</arg_key><arg_value>CET</arg_value></tool_call>",
        ),
        "<think>Weather.</think>",
    ),
    "kimi_k2": Transcript(
        *joined(
            "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
            + WEATHER
            + "<|tool_call_end|>",
            "",
            "<|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>"
            + TIME
            + "<|tool_call_end|>",
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
        ),
        "<think>Weather.</think>",
    ),
    "phi4_mini": Transcript(*(f"functools{text}" for text in LIST)),
    "command_a": Transcript(
        *joined(
            f'{{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {WEATHER}}}',
            ",\n    ",
            f'{{"tool_call_id": "1", "tool_name": "get_time", "parameters": {TIME}}}',
            "<|START_ACTION|>[\n    ",
            "\n]<|END_ACTION|>",
        ),
        "<|START_THINKING|>I will look up the weather.<|END_THINKING|>",
        "<|START_RESPONSE|>It rains in Rome today.<|END_RESPONSE|>",
    ),
    "granite3": Transcript(*(f"<|tool_call|>{text}" for text in LIST)),
    "smollm2": Transcript(*(f"<tool_call>{text}</tool_call>" for text in LIST)),
    "exaone4": Transcript(
        *joined(f"<tool_call>{NAMED}</tool_call>", "\n", f"<tool_call>{NAMED_TIME}</tool_call>"), THOUGHT
    ),
    "minimax_m2": Transcript(
        *joined(
            '<invoke name="get_weather">\n<parameter name="city">Rome</parameter>\n'
            '<parameter name="days">2</parameter>\n</invoke>\n',
            "",
            '<invoke name="get_time">\n<parameter name="zone">CET</parameter>\n</invoke>\n',
            "<minimax:tool_call>\n",
            "</minimax:tool_call>",
        ),
        "<think>\nWeather.\n</think>\n\n",
    ),
    "internlm2": Transcript(
        '<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": ' + WEATHER + "}<|action_end|>"
    ),
    "jamba": Transcript(*(f"<tool_calls>{text}</tool_calls>" for text in LIST)),
    "longcat": Transcript(*(text.replace("tool_call>", "longcat_tool_call>") for text in HERMES)),
}
"""By template."""
