// Who has the lease of a session, and who waits for it: one value, so that a check-and-set can change it. All times are
// epoch milliseconds of the one clock that a store's users share.

interface Holder {
  readonly token: string;
  /** When it counts as dead. */
  readonly until: number;
}

/** The lease of one session. */
export interface LeaseState {
  readonly holder: Holder | undefined;
  /** First come first served. */
  readonly line: readonly Holder[];
}

/** A lease that nobody has or waits for. */
export const FREE: LeaseState = { holder: undefined, line: [] };

/** Whether the lease is the token's. */
export function isHeldBy({ holder }: LeaseState, token: string, now: number): boolean {
  return holder?.token === token && holder.until > now;
}

/** Gives the lease to `token` where it is free and nobody waits before it; else puts it in the line, or keeps it there. */
export function acquire(state: LeaseState, token: string, now: number, leaseMs: number, waitMs: number): LeaseState {
  if (isHeldBy(state, token, now)) return state;
  const line = state.line.filter((each) => each.token === token || each.until > now);
  const holder = state.holder && state.holder.until > now ? state.holder : undefined;
  const first = line[0];
  if (!holder && (!first || first.token === token)) {
    return { holder: { token, until: now + leaseMs }, line: line.slice(first ? 1 : 0) };
  }
  const place = line.findIndex((each) => each.token === token);
  if (place < 0) line.push({ token, until: now + waitMs });
  // Not at every time of asking: it is a write.
  else if (line[place]!.until < now + waitMs / 2) line[place] = { token, until: now + waitMs };
  else if (line.length === state.line.length && holder === state.holder) return state;
  return { holder, line };
}

/** Makes the lease last longer; undefined where it is not the token's any more. */
export function renew(state: LeaseState, token: string, now: number, leaseMs: number): LeaseState | undefined {
  return isHeldBy(state, token, now) ? { ...state, holder: { token, until: now + leaseMs } } : undefined;
}

/** Takes the token out of it. */
export function release({ holder, line }: LeaseState, token: string): LeaseState {
  return {
    holder: holder?.token === token ? undefined : holder,
    line: line.filter((each) => each.token !== token),
  };
}

/** Whether there is nothing to keep. */
export function isFree({ holder, line }: LeaseState): boolean {
  return holder === undefined && line.length === 0;
}
