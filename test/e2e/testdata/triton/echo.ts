import { defineModel } from "tensorlet";

export default defineModel({ predict: (inputs) => inputs });
