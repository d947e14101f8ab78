"""OpenAI's own client: what its users do, and what they catch.

Two servers on free ports: one with the project's functions, one with those of testdata/openai. The last line is
"N passed, N failed".
"""
import functools
import os
import sys
import time

import openai
from openai import OpenAI

from servers import FUNCTIONS, ROOT, Server
from suite import equal, play, run

FIXTURES = os.path.join(ROOT, "test", "e2e", "testdata", "openai")
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def fails(kind, fn):
    try:
        fn()
    except kind as error:
        return error
    raise AssertionError("no %s" % kind.__name__)


def client_of(server):
    return OpenAI(base_url=server.http + "/v1", api_key="none", max_retries=0, timeout=60)


def user(text):
    return [{"role": "user", "content": text}]


def write(client, prompt, model="speaker", **more):
    return client.completions.create(model=model, prompt=prompt, **more)


def chat(client, text, model="speaker", **more):
    return client.chat.completions.create(model=model, messages=user(text), **more)


def until_ended(client, key):
    stop = time.time() + 20
    while write(client, "report %s" % key).choices[0].text != "ended":
        assert time.time() < stop, "the function goes on after its client has left"
        time.sleep(0.05)


# ---------------------------------------------------------------- with testdata/openai
@test
def models_are_listed(own, _):
    equal(sorted(m.id for m in own.models.list()), ["numbers", "speaker"])
    equal(own.models.retrieve("speaker").object, "model")
    fails(openai.NotFoundError, lambda: own.models.retrieve("nobody"))


@test
def a_completion(own, _):
    answer = write(own, "one two three")
    equal(answer.choices[0].text, "one two three ")
    equal(answer.choices[0].finish_reason, "stop")
    equal((answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens), (0, 3, 3))


@test
def a_completion_in_pieces(own, _):
    chunks = list(write(own, "one two", stream=True, stream_options={"include_usage": True}))
    equal([c.choices[0].text for c in chunks if c.choices], ["one ", "two ", ""])
    equal([c.choices[0].finish_reason for c in chunks if c.choices], [None, None, "stop"])
    equal(chunks[-1].usage.completion_tokens, 2)
    equal(len({c.id for c in chunks}), 1)


@test
def a_chat_with_its_history(own, _):
    messages = [{"role": "developer", "content": "d"}] + user("u") + [{"role": "assistant", "content": "a"}] + user("history")
    for _ in range(2):  # nothing stays of the first one
        answer = own.chat.completions.create(model="speaker", messages=messages)
        equal(answer.choices[0].message.content, "system: d\nuser: u\nassistant: a")
        equal(answer.choices[0].message.role, "assistant")


@test
def a_chat_in_pieces(own, _):
    chunks = list(chat(own, "one two", stream=True))
    equal(chunks[0].choices[0].delta.role, "assistant")
    equal("".join(c.choices[0].delta.content or "" for c in chunks), "one two ")
    equal(chunks[-1].choices[0].finish_reason, "stop")


@test
def the_clients_own_stream_helper(own, _):
    with own.chat.completions.stream(model="speaker", messages=user("one two")) as stream:
        for _ in stream:
            pass
        equal(stream.get_final_completion().choices[0].message.content, "one two ")


@test
def stop_texts(own, _):
    for ask, text_of in ((write, lambda c: c.text), (chat, lambda c: c.message.content)):
        choice = ask(own, "one two three", stop="o t").choices[0]
        equal((text_of(choice), choice.finish_reason), ("one tw", "stop"))
        equal(text_of(ask(own, "one two three", stop=["zzz", "two"]).choices[0]), "one ")
        equal(text_of(ask(own, "one two", stop="two three").choices[0]), "one two ")
    chunks = list(write(own, "one two three", stop="o t", stream=True))
    equal("".join(c.choices[0].text for c in chunks), "one tw")


@test
def max_tokens(own, _):
    equal([(c.text, c.finish_reason) for c in write(own, "a b c", max_tokens=2).choices], [("a b ", "length")])
    equal([(c.message.content, c.finish_reason) for c in chat(own, "a b c", max_completion_tokens=2).choices], [("a b ", "length")])


@test
def a_stop_ends_an_endless_function(own, _):
    write(own, "endless stopped", stop="n a")
    until_ended(own, "stopped")


@test
def a_client_that_leaves_ends_its_function(own, _):
    for ask, key in ((write, "left-write"), (chat, "left-chat")):
        stream = ask(own, "endless %s" % key, stream=True)
        for _, _ in zip(range(5), stream):
            pass
        stream.close()
        until_ended(own, key)


@test
def a_client_that_gives_up_ends_its_function(own, _):
    for ask, key in ((write, "late-write"), (chat, "late-chat")):
        fails(openai.APITimeoutError, lambda: ask(own, "endless %s" % key, timeout=0.5))
        until_ended(own, key)


@test
def errors_are_the_clients_own(own, _):
    error = fails(openai.NotFoundError, lambda: write(own, "x", model="speakr"))
    equal((error.code, error.param), ("model_not_found", "model"))
    assert "speaker" in error.message, error.message
    for ask in (write, chat):
        equal(fails(openai.BadRequestError, lambda: ask(own, "x", model="numbers")).param, "model")
        equal(fails(openai.BadRequestError, lambda: ask(own, "x", temperature=1.5)).param, "temperature")
        equal(fails(openai.BadRequestError, lambda: ask(own, "x", n=2)).param, "n")
        equal(fails(openai.BadRequestError, lambda: ask(own, "x", max_tokens=0)).param, "max_tokens")
        error = fails(openai.RateLimitError, lambda: ask(own, "busy"))
        equal((error.response.headers["retry-after"], error.code), ("3", "rate_limit_exceeded"))
        fails(openai.RateLimitError, lambda: ask(own, "busy", stream=True))
        error = fails(openai.APIStatusError, lambda: ask(own, "gone"))
        equal((error.status_code, error.response.headers["retry-after"]), (503, "1"))
        fails(openai.InternalServerError, lambda: ask(own, "break"))
    fails(openai.BadRequestError, lambda: own.chat.completions.create(model="speaker", messages=[]))


@test
def an_error_in_the_middle_of_a_stream(own, _):
    for ask, has_text in ((write, lambda c: c.text), (chat, lambda c: c.delta.content)):
        got = []

        def read():
            for chunk in ask(own, "one break", stream=True):
                got.append(chunk.choices[0])

        error = fails(openai.APIError, read)
        equal(error.message, "It broke")
        assert any(has_text(c) for c in got), got


# ---------------------------------------------------------------- with the project's functions
@test
def austen_writes(_, project):
    text = write(project, "It was", "austen", max_tokens=8, seed=7).choices[0].text
    assert text, "nothing"
    equal(write(project, "It was", "austen", max_tokens=8, seed=7).choices[0].text, text, "the same seed")
    others = {write(project, "It was", "austen", max_tokens=8, seed=seed).choices[0].text for seed in range(8, 12)}
    assert others != {text}, "other seeds, the same text"
    chunks = list(write(project, "It was", "austen", max_tokens=8, seed=7, stream=True))
    equal("".join(c.choices[0].text for c in chunks), text, "in pieces")
    equal(chunks[-1].choices[0].finish_reason, "length")
    greedy = [write(project, "It was", "austen", max_tokens=8, temperature=0, seed=seed).choices[0].text for seed in (1, 2)]
    equal(greedy[0], greedy[1], "temperature 0")
    equal(write(project, "It was", "austen", max_tokens=8, seed=1, extra_body={"top_k": 1}).choices[0].text, greedy[0], "top_k 1")


@test
def austen_stops(_, project):
    whole = write(project, "It was", "austen", max_tokens=20, seed=7).choices[0].text
    stop = whole[len(whole) // 2:][:5]
    choice = write(project, "It was", "austen", max_tokens=20, seed=7, stop=stop).choices[0]
    equal((choice.text, choice.finish_reason), (whole[:whole.index(stop)], "stop"))


@test
def austen_talks(_, project):
    messages = [{"role": "system", "content": "They met in the garden."}] + user("Good morning!")
    answer = project.chat.completions.create(model="austen", messages=messages, seed=3, max_tokens=12)
    assert answer.choices[0].message.content.startswith('"'), answer
    chunks = project.chat.completions.create(model="austen", messages=messages, seed=3, max_tokens=12, stream=True)
    equal("".join(c.choices[0].delta.content or "" for c in chunks), answer.choices[0].message.content)
    fails(openai.BadRequestError, lambda: write(project, "x", "digits"))


def main(only):
    arguments = ["--http-port", "0"]
    with Server(FIXTURES, args=arguments) as own, Server(FUNCTIONS, args=arguments) as project:
        tests = [(fn.__name__, functools.partial(with_clients, fn, own, project)) for fn in TESTS]
        return play(tests, only, lambda: own.log(15))


def with_clients(fn, *servers):
    fn(*map(client_of, servers))


if __name__ == "__main__":
    run(main, sys.argv[1:])
