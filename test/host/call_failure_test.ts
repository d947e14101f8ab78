import { assertEquals } from "tensorlet/assert";
import { ClientError } from "../../runtime/client.ts";
import { failureText } from "../../runtime/call/failure.ts";

const unsuited = new ClientError("invalid_argument", 'got dtype "float32", wanted "int64"', {
  details: { input: "x", wantedDtype: "int64" },
});

Deno.test("failureText() says how to send what the function wants, where that can be done", () => {
  const said = 'error: invalid_argument: got dtype "float32", wanted "int64"';
  assertEquals(failureText(unsuited), `${said}; --dtype int64 converts it`);
  assertEquals(
    failureText(unsuited, true),
    `${said}; over gRPC a stream takes float32 only, POST /v2/models/NAME/generate_stream takes others`,
  );
});
