// Who has the lease of a session, and who is next. All times are epoch milliseconds of the one clock that a store's users
// share.

/** Who has a lease, or a place in the line for it. */
export interface Holder {
  readonly token: string;
  /** When it counts as dead. */
  readonly until: number;
}

/** A place in the line for a lease. */
export interface Waiter extends Holder {
  readonly since: number;
}

/** Whether a lease is the token's. */
export function isHeldBy(holder: Holder | null | undefined, token: string, now: number): boolean {
  return holder?.token === token && holder.until > now;
}

/** Whether a lease is for `token` to take: nobody has it, and nobody waits for it who came before. */
export function isNext(
  holder: Holder | null | undefined,
  line: readonly Waiter[],
  token: string,
  now: number,
): boolean {
  if (holder && holder.until > now) return false;
  const own = line.find((each) => each.token === token);
  return line.every((each) => each.token === token || each.until <= now || own !== undefined && isBefore(own, each));
}

function isBefore(a: Waiter, b: Waiter): boolean {
  return a.since === b.since ? a.token < b.token : a.since < b.since;
}
