// What a process and all that it has started take of processor and memory, from /proc. Linux only.

/** Milliseconds of a clock tick, the unit of /proc's times: 100 a second on every Linux of today. */
const TICK_MS = 10;

/** A process and its descendants. One that has ended meanwhile is left out. */
export function treeOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const { name } of Deno.readDirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (!stat) continue;
    const siblings = children.get(stat.parent);
    if (siblings) siblings.push(Number(name));
    else children.set(stat.parent, [Number(name)]);
  }
  const tree = [pid];
  for (const member of tree) tree.push(...children.get(member) ?? []);
  return tree;
}

/** Milliseconds of user and system time that the tree has used so far, children that have ended included. */
export function cpuMs(pid: number): number {
  return treeOf(pid).reduce((sum, member) => sum + (readStat(member)?.ticks ?? 0), 0) * TICK_MS;
}

/** The tree's resident memory in MiB: shared pages count for each process. */
export function rssMib(pid: number): number {
  return sumOfStatus(pid, "VmRSS");
}

/** The tree's largest resident memory in MiB since {@linkcode resetPeak}. */
export function peakRssMib(pid: number): number {
  return sumOfStatus(pid, "VmHWM");
}

/** Has the peak counted from now on. */
export function resetPeak(pid: number): void {
  for (const member of treeOf(pid)) Deno.writeTextFileSync(`/proc/${member}/clear_refs`, "5");
}

function sumOfStatus(pid: number, field: string): number {
  const pattern = new RegExp(`^${field}:\\s+(\\d+) kB`, "m");
  return treeOf(pid).reduce((sum, member) => sum + Number(pattern.exec(read(member, "status"))?.[1] ?? 0), 0) / 1024;
}

/** The fields of /proc/PID/stat that are used here; see proc(5). */
function readStat(pid: number): { readonly parent: number; readonly ticks: number } | undefined {
  // The name may hold spaces and parentheses, so what counts comes behind the last one.
  const text = /\) (.*)/s.exec(read(pid, "stat"))?.[1];
  if (text === undefined) return undefined;
  const fields = text.split(" ");
  const [parent, ...times] = [1, 11, 12, 13, 14].map((index) => Number(fields[index]));
  return { parent: parent!, ticks: times.reduce((sum, time) => sum + time, 0) };
}

function read(pid: number, file: string): string {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/${file}`);
  } catch {
    return ""; // it has ended
  }
}
