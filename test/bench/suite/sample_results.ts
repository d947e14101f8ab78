// A row for the tests of what is made of rows.
import type { RowResult } from "./results.ts";

/** Two contenders, three rounds, one of them failed for the second. */
export const ROW: RowResult = {
  id: "small",
  title: "small calls & <more>",
  figure: "rate",
  contenders: [
    { name: "Tensorlet", rounds: [{ rate: 8000, p50: 8 }, { rate: 9000, p50: 7 }, { rate: 4000, p50: 16 }] },
    { name: "Python", rounds: [{ rate: 2000, p50: 30 }, undefined, { rate: 1000, p50: 60 }] },
  ],
  goals: [
    { figure: "rate", of: "Tensorlet", to: "Python", atLeast: 5 },
    { figure: "p50", of: "Tensorlet", to: "Python", atMost: 0.5 },
    { figure: "rate", of: "Tensorlet", to: "C++", atLeast: 1 },
  ],
};
