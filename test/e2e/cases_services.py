"""grpc.health.v1 and server reflection, v1 and v1alpha."""
import queue
import threading

import grpc
import health_pb2 as hp
import health_pb2_grpc as hpg
import reflection_pb2 as rp
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from caselib import SC, case, check, mp
from helpers import refused

SERVICES = ("inference.InferenceService", "inference.v1.ModelInference")
SERVING, UNKNOWN = hp.HealthCheckResponse.SERVING, hp.HealthCheckResponse.SERVICE_UNKNOWN


# ---------------------------------------------------------------- health
@case("health.check", "health")
def _(t):
    """SERVING for the server (B141), each service and each function; NOT_FOUND for anything else."""
    stub = hpg.HealthStub(t.ch)
    for name in ("",) + SERVICES + ("affine", "counter", "parrot", "sum"):
        check(stub.Check(hp.HealthCheckRequest(service=name), timeout=5).status == SERVING, "%r is not SERVING" % name)
    for name in ("nope", "__proto__", "constructor", "Affine", "inference", "x" * 100_000, "\0"):
        refused(lambda: stub.Check(hp.HealthCheckRequest(service=name), timeout=5), SC.NOT_FOUND, what=name[:20])


@case("health.list", "health")
def _(t):
    """List has the server, both services and the functions, all SERVING."""
    got = hpg.HealthStub(t.ch).List(hp.HealthListRequest(), timeout=5).statuses
    missing = [n for n in ("",) + SERVICES + ("affine", "parrot") if n not in got]
    check(not missing, "List lacks %s" % missing)
    check(all(v.status == SERVING for v in got.values()), "%s" % {k: v.status for k, v in got.items() if v.status != SERVING})


@case("health.watch", "health")
def _(t):
    """Watch gives the present status at once and only once; an unknown name is SERVICE_UNKNOWN and stays open; a cancel ends it."""
    stub = hpg.HealthStub(t.ch)
    for name, want in (("", SERVING), ("inference.v1.ModelInference", SERVING), ("affine", SERVING), ("nope", UNKNOWN)):
        call, box = stub.Watch(hp.HealthCheckRequest(service=name), timeout=20), queue.Queue()
        def read():
            try:
                for m in call:
                    box.put(m.status)
            except grpc.RpcError as e:
                box.put(e.code())
        threading.Thread(target=read, daemon=True).start()
        check(box.get(timeout=3) == want, "the first status of %r" % name)
        try:
            check(False, "%r: %s came without a change" % (name, box.get(timeout=0.7)))
        except queue.Empty:
            pass
        call.cancel()
        check(box.get(timeout=3) == SC.CANCELLED, "the end of Watch")


@case("health.many", "health")
def _(t):
    """200 watchers that come and go leave nothing behind."""
    stub = hpg.HealthStub(t.ch)
    files = t.fds()
    for _ in range(200):
        call = stub.Watch(hp.HealthCheckRequest(), timeout=20)
        check(next(call).status == SERVING, "status")
        call.cancel()
    if files:
        check(t.fds() <= files + 3, "descriptors: %d, then %d" % (files, t.fds()))


# ---------------------------------------------------------------- reflection
def reflect(t, version, *requests):
    """The answers to some requests on one stream. The two versions have one wire format."""
    call = t.ch.stream_stream("/grpc.reflection.%s.ServerReflection/ServerReflectionInfo" % version,
                              request_serializer=rp.ServerReflectionRequest.SerializeToString, response_deserializer=rp.ServerReflectionResponse.FromString)
    return list(call(iter(requests), timeout=8))


def ask(**kw):
    return rp.ServerReflectionRequest(host="h", **kw)


def pool_from(t, version, symbol):
    """A descriptor pool of what reflection gives for a symbol, imports fetched by name as grpcurl does."""
    files, wanted = {}, []
    def take(response):
        check(response.HasField("file_descriptor_response"), "%s" % response)
        for raw in response.file_descriptor_response.file_descriptor_proto:
            fd = descriptor_pb2.FileDescriptorProto.FromString(raw)
            files[fd.name] = fd
            wanted.extend(fd.dependency)
    take(reflect(t, version, ask(file_containing_symbol=symbol))[0])
    while wanted:
        name = wanted.pop()
        if name not in files:
            take(reflect(t, version, ask(file_by_filename=name))[0])
    pool, added = descriptor_pool.DescriptorPool(), set()
    def add(name):
        if name not in added:
            added.add(name)
            for dep in files[name].dependency:
                add(dep)
            pool.AddSerializedFile(files[name].SerializeToString())
    for name in list(files):
        add(name)
    return pool, files


def message(pool, name):
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


@case("reflection.list", "reflection")
def _(t):
    """Both versions list both services, health and reflection (B137)."""
    for version in ("v1", "v1alpha"):
        r = reflect(t, version, ask(list_services=""))
        check(len(r) == 1, "%d answers" % len(r))
        names = {s.name for s in r[0].list_services_response.service}
        need = set(SERVICES) | {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}
        check(need <= names, "%s lacks %s" % (version, sorted(need - names)))
        check(r[0].original_request.list_services == "" and r[0].original_request.WhichOneof("message_request") == "list_services", "original_request is not echoed")


@case("reflection.pool", "reflection")
def _(t):
    """protobuf's strict pool takes the descriptors; a PredictRequest with a map entry made from them is understood (B139)."""
    for version in ("v1", "v1alpha"):
        pool, files = pool_from(t, version, "inference.v1.ModelInference")
        service = pool.FindServiceByName("inference.v1.ModelInference")
        got = [(m.name, m.input_type.full_name, m.output_type.full_name) for m in service.methods]
        check([g[0] for g in got] == ["Predict", "StreamPredict", "BatchPredict", "ChatStream"], "%s" % got)
        fd = [f for f in files.values() if f.package == "inference.v1"][0]
        check([(m.client_streaming, m.server_streaming) for m in fd.service[0].method] == [(False, False), (False, True), (True, False), (True, True)], "streaming flags")
        made = message(pool, "inference.v1.PredictRequest")(model_id="grid", input_tensor=[1, 2, 3, 4], max_tokens=7)
        made.params["factor"] = "3"
        same = mp.PredictRequest.FromString(made.SerializeToString())
        check(dict(same.params) == {"factor": "3"} and list(same.input_tensor) == [1, 2, 3, 4] and same.max_tokens == 7, "%s" % same)
        raw = t.raw("/inference.v1.ModelInference/Predict", made.SerializeToString())
        answer = message(pool, "inference.v1.PredictResponse").FromString(raw)
        check(list(answer.output_tensor) == [3, 6, 9, 12], "%s" % answer)
        check(pool.FindMessageTypeByName("inference.v1.PredictRequest").fields_by_name["params"].message_type.GetOptions().map_entry, "params is no map")


@case("reflection.types", "reflection")
def _(t):
    """The descriptors have the fields' numbers, types and labels of the protos on disk."""
    import inference_pb2 as ip
    for symbol, module in (("inference.InferenceService", ip), ("inference.v1.ModelInference", mp)):
        pool, _files = pool_from(t, "v1", symbol)
        for name, want in module.DESCRIPTOR.message_types_by_name.items():
            got = pool.FindMessageTypeByName(want.full_name)
            a, b = descriptor_pb2.DescriptorProto(), descriptor_pb2.DescriptorProto()
            got.CopyToProto(a)
            want.CopyToProto(b)
            pick = lambda d: [(f.name, f.number, f.type, f.label, f.type_name) for f in d.field] + [(n.name, n.options.map_entry) for n in d.nested_type]
            check(pick(a) == pick(b), "%s: %s is not %s" % (name, pick(a), pick(b)))


@case("reflection.symbols", "reflection")
def _(t):
    """Services, methods, messages, fields' types and nested ones are found; one stream answers many requests in order."""
    symbols = ("inference.InferenceService", "inference.InferenceService.Predict", "inference.TensorData", "inference.v1.ModelInference.ChatStream",
               "inference.v1.PredictRequest", "inference.v1.PredictRequest.ParamsEntry", "grpc.health.v1.Health", "grpc.health.v1.HealthCheckResponse.ServingStatus",
               "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflectionRequest")
    for version in ("v1", "v1alpha"):
        got = reflect(t, version, *[ask(file_containing_symbol=s) for s in symbols])
        check(len(got) == len(symbols), "%d answers" % len(got))
        for symbol, r in zip(symbols, got):
            check(r.original_request.file_containing_symbol == symbol, "out of order: %s" % r.original_request)
            check(r.HasField("file_descriptor_response"), "%s: %s" % (symbol, r.error_response))


@case("reflection.errors", "reflection")
def _(t):
    """Unknown symbols, files and extensions, and an empty request, are error_responses; the stream goes on."""
    bad = (ask(file_containing_symbol="nope.Nope"), ask(file_by_filename="nope.proto"), ask(file_containing_symbol=""), ask(file_by_filename="../deno.json"), ask(file_containing_symbol="__proto__"),
           ask(file_containing_extension=rp.ExtensionRequest(containing_type="inference.TensorData", extension_number=7)), ask(all_extension_numbers_of_type="nope.Nope"), ask(),
           ask(file_by_filename="x" * 100_000))
    got = reflect(t, "v1", *bad, ask(list_services=""))
    check(len(got) == len(bad) + 1 and got[-1].HasField("list_services_response"), "%d answers" % len(got))
    for q, r in zip(bad, got):
        check(r.HasField("error_response") and r.error_response.error_code != 0, "%s: %s" % (str(q)[:80], str(r)[:200]))
    check(got[0].error_response.error_code == 5 and "nope.Nope" in got[0].error_response.error_message, "%s" % got[0])
    check(len(got[-2].error_response.error_message) < 8000, "a message of %d characters" % len(got[-2].error_response.error_message))
    check(reflect(t, "v1") == [], "a stream without a request")


@case("reflection.cancel", "reflection")
def _(t):
    """100 reflection streams cancelled after their first answer."""
    for _ in range(100):
        box = queue.Queue()
        box.put(ask(list_services=""))
        call = t.ch.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", request_serializer=rp.ServerReflectionRequest.SerializeToString,
                                  response_deserializer=rp.ServerReflectionResponse.FromString)(iter(box.get, None), timeout=5)
        next(call)
        call.cancel()
        box.put(None)
