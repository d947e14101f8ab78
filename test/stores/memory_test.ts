import { MemorySessionStore } from "../../runtime/middleware/session_store.ts";
import { testStore } from "../harness/store_contract.ts";

testStore("MemorySessionStore", () => {
  const store = new MemorySessionStore();
  return Promise.resolve({ open: () => store, [Symbol.asyncDispose]: () => store.close() });
});
