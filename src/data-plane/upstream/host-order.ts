// The hosts of a cluster in the order that main says, and those that have left. Main keeps the order of hosts that stay, so
// one walk over both orders finds everything, without a look-up for each of what may be ten thousand hosts: requests wait
// meanwhile. Worker thread.

/** What is looked at of a host: the address of its record, which no two of them share. */
interface Recorded {
  readonly record: number;
}

export interface HostOrder<Member extends Recorded> {
  readonly hosts: readonly Member[];
  /** Of the former ones, in their order. */
  readonly leaving: readonly Member[];
}

/**
 * @param records of the hosts that there are now, each once.
 * @param added the new ones among them, by record.
 */
export function orderHosts<Member extends Recorded>(
  former: readonly Member[],
  records: readonly number[],
  added: ReadonlyMap<number, Member>,
): HostOrder<Member> {
  const hosts: Member[] = [];
  const leaving: Member[] = [];
  let at = 0;
  for (const record of records) {
    let host = former[at];
    if (host?.record === record) at += 1;
    else {
      host = added.get(record);
      if (host === undefined) {
        // Those before it have left.
        while (at < former.length && former[at]!.record !== record) leaving.push(former[at++]!);
        if (at === former.length) return orderAnew(former, records, added);
        host = former[at++]!;
      }
    }
    hosts.push(host);
  }
  while (at < former.length) leaving.push(former[at++]!);
  return { hosts, leaving };
}

/** Hosts that stay have changed places. */
function orderAnew<Member extends Recorded>(
  former: readonly Member[],
  records: readonly number[],
  added: ReadonlyMap<number, Member>,
): HostOrder<Member> {
  const known = new Map(former.map((host) => [host.record, host]));
  const hosts = records.map((record) => added.get(record) ?? known.get(record)!);
  for (const record of records) known.delete(record);
  return { hosts, leaving: [...known.values()] };
}
