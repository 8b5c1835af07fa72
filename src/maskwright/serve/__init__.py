"""``maskwright serve``: an OpenAI-compatible server over one Hugging Face model.

``settings``    what may be set: limits of what strangers send, and defaults
``errors``      refusals, in OpenAI's shape
``protocol``    the requests of the three end points: parameters are known and of the right type, or refused by name
``conversation`` messages of chats and items of responses -> what a chat template takes
``prompts``     messages -> token ids; how tools are shown to models whose template does not know them
``constraints`` ``response_format`` and ``tools`` -> what is compiled
``tool_calls``  a text that grows -> what is said, and the calls in it
``free_text``   the matcher of an output without constraint
``sampling``    how tokens are chosen
``engine``      the thread that moves all rows
``outputs``     the outputs of one request, seen from the event loop
``service``     from a request to its outputs: translate, compile, queue
``logprobs``, ``chat``, ``completions``, ``responses``  answers, whole and streamed
``transport``   reading bodies, sending events, clients that go away
``metrics``     what Prometheus reads
``app``         the routes;  ``running`` the process: start, signals, end

A request travels in that order.  Needs the extra ``serve``.
"""
