// The messages and methods that `tensorlet/client` uses, from `protos/` as JSON: the client needs no files.
//   deno run -A .ci/client_protos.ts            prints it
//   deno run -A .ci/client_protos.ts --update   writes it to runtime/client/protos.json, which a test compares it with
import protobuf from "protobufjs";

const PROTOS = new URL("../protos/", import.meta.url);
const FILES = ["inference.proto", "inference/v1/model_inference.proto", "google/rpc/status.proto"];

/** The text of `runtime/client/protos.json`. */
export function clientProtos(): string {
  const root = new protobuf.Root();
  // Names like google/protobuf/any.proto are protobufjs's own.
  root.resolvePath = (_origin, target) => FILES.includes(target) ? new URL(target, PROTOS).pathname : target;
  root.loadSync(FILES, { keepCase: true });
  return `${JSON.stringify(root.toJSON(), undefined, 2)}\n`;
}

if (import.meta.main) {
  if (Deno.args.includes("--update")) {
    await Deno.writeTextFile(new URL("../runtime/client/protos.json", import.meta.url), clientProtos());
  } else {
    console.log(clientProtos().trimEnd());
  }
}
