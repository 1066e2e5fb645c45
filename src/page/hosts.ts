// The hosts of one cluster, below its row: how each does, and why it is as it is.

import { getJson } from './api.ts';
import type { Host, Hosts } from './data.ts';
import { el, type Row, Rows, setText } from './dom.ts';
import { clockTime, duration, percent, short, whole } from './format.ts';
import { MEAN_SECONDS } from './history.ts';
import { type Column, compareBy, Sorting } from './sorting.ts';

const COLUMNS: readonly Column[] = [
  { key: 'address', label: 'Host' },
  { key: 'health', label: 'Health' },
  { key: 'reason', label: 'Reason', isFixed: true },
  { key: 'since', label: 'Since', isFixed: true },
  { key: 'rate', label: 'Requests', unit: '/s', isNumber: true },
  { key: 'success', label: 'Success', unit: '%', isNumber: true },
  { key: 'p50', label: 'p50', unit: 'ms', isNumber: true },
  { key: 'p99', label: 'p99', unit: 'ms', isNumber: true },
  { key: 'active', label: 'Active', isNumber: true },
  { key: 'connections', label: 'Conns', isNumber: true },
  { key: 'unreached', label: 'Refused', unit: 'all', isNumber: true },
  { key: 'total', label: 'Requests', unit: 'all', isNumber: true },
  { key: 'ejections', label: 'Ejections', isNumber: true },
  { key: 'weight', label: 'Weight', isNumber: true },
  { key: 'zone', label: 'Zone' },
];

/** Places of the columns of numbers, which follow one another but for the zone. */
const NUMBERS = COLUMNS.filter(({ isNumber }) => isNumber);

const TEXTS: Readonly<Record<string, (state: HostState) => string>> = {
  rate: ({ recent }) => short(recent.rate),
  success: ({ recent }) => percent(recent.success),
  p50: ({ host }) => short(host.p50Ms),
  p99: ({ host }) => short(host.p99Ms),
  active: ({ host }) => whole(host.activeRequests),
  connections: ({ host }) => whole(host.activeConnections),
  unreached: ({ host }) => whole(host.connectFailures),
  total: ({ host }) => whole(host.requests),
  ejections: ({ host }) => whole(host.ejections),
  weight: ({ host }) => whole(host.weight),
};

const VALUES: Readonly<Record<string, (state: HostState) => number | string | null>> = {
  address: ({ host }) => host.address,
  health: ({ host }) => ({ unhealthy: 0, degraded: 1, healthy: 2 })[host.health],
  rate: ({ recent }) => recent.rate,
  success: ({ recent }) => recent.success,
  p50: ({ host }) => host.p50Ms,
  p99: ({ host }) => host.p99Ms,
  active: ({ host }) => host.activeRequests,
  connections: ({ host }) => host.activeConnections,
  unreached: ({ host }) => host.connectFailures,
  total: ({ host }) => host.requests,
  ejections: ({ host }) => host.ejections,
  weight: ({ host }) => host.weight,
  zone: ({ host }) => host.zone,
};

interface HostState {
  readonly host: Host;
  readonly recent: Recent;
}

/** What has become of a host's requests lately; null where nothing is known. */
export interface Recent {
  readonly rate: number | null;
  readonly success: number | null;
}

type Totals = Pick<Host, 'requests' | 'successes' | 'errors'>;

/** The totals of one host over the last seconds: rates are differences of the oldest and the newest. */
export class RecentTotals {
  readonly #kept: { readonly atMs: number; readonly totals: Totals }[] = [];

  add(atMs: number, totals: Totals): Recent {
    const latest = this.#kept.at(-1);
    // They were reset.
    if (latest !== undefined && totals.requests < latest.totals.requests) this.#kept.length = 0;
    this.#kept.push({ atMs, totals });
    while (this.#kept.length > 2 && this.#kept[1]!.atMs <= atMs - 1000 * MEAN_SECONDS) this.#kept.shift();
    const first = this.#kept[0]!;
    if (first.atMs === atMs) return { rate: null, success: null };
    const grown = (name: keyof Totals): number => totals[name] - first.totals[name];
    const [successes, errors] = [grown('successes'), grown('errors')];
    return {
      rate: (1000 * grown('requests')) / (atMs - first.atMs),
      success: successes + errors === 0 ? null : successes / (successes + errors),
    };
  }
}

export class HostTable {
  readonly element: HTMLElement;
  readonly #cluster: string;
  readonly #rows: Rows<HostState>;
  readonly #sorting: Sorting;
  readonly #note = el('p', { class: 'quiet' }, 'Asking for the hosts …');
  readonly #totals = new Map<string, RecentTotals>();
  #states: readonly HostState[] = [];

  constructor(cluster: string) {
    this.#cluster = cluster;
    this.#sorting = new Sorting(COLUMNS, 'health', () => this.#show());
    const body = el('tbody');
    this.#rows = new Rows(body, ({ host }) => host.address, hostRow);
    this.element = el(
      'div',
      { class: 'scroll' },
      el(
        'table',
        { class: 'dense hosts' },
        el('caption', { class: 'hidden' }, `Hosts of ${cluster}`),
        el('thead', {}, this.#sorting.head),
        body,
      ),
      this.#note,
    );
  }

  async load(): Promise<void> {
    const answer = await getJson<Hosts>(`page/hosts?cluster=${encodeURIComponent(this.#cluster)}`).catch(
      () => undefined,
    );
    if (answer === undefined) {
      setText(this.#note, 'The hosts cannot be had.');
      return;
    }
    const { hosts, hostCount } = answer;
    setText(this.#note, noteOf(hosts.length, hostCount));
    const atMs = performance.now();
    const former = new Map(this.#totals);
    this.#totals.clear();
    this.#states = hosts.map((host) => {
      const totals = former.get(host.address) ?? new RecentTotals();
      this.#totals.set(host.address, totals);
      return { host, recent: totals.add(atMs, host) };
    });
    this.#show();
  }

  #show(): void {
    this.#rows.update([...this.#states].sort(compareBy(VALUES[this.#sorting.key]!, this.#sorting.isDescending)));
  }
}

function noteOf(shown: number, all: number): string {
  if (all === 0) return 'This cluster has no hosts.';
  return shown < all ? `${shown} of ${whole(all)} hosts, the unhealthy first` : '';
}

function hostRow({ host: { address, hostname } }: HostState): Row<HostState> {
  const health = el('td');
  const reason = el('td', { class: 'reason' });
  const since = el('td', { class: 'since' });
  const numbers = NUMBERS.map(({ key }) => ({ key, cell: el('td', { class: 'number' }) }));
  const zone = el('td');
  const name = hostname === '' || hostname === address ? undefined : el('span', { class: 'quiet' }, ` ${hostname}`);
  const cells = numbers.map(({ cell }) => cell);
  const row = el('tr', {}, el('th', { scope: 'row' }, address, name), health, reason, since, ...cells, zone);
  return {
    elements: [row],
    update(state) {
      const { host, recent } = state;
      setText(health, host.health);
      health.className = `health ${host.health}`;
      setText(reason, host.reason);
      setText(
        since,
        host.sinceMs === null ? '' : `${clockTime(host.sinceMs)}, ${duration((Date.now() - host.sinceMs) / 1000)}`,
      );
      for (const { key, cell } of numbers) setText(cell, TEXTS[key]!(state));
      const isBad = recent.success !== null && recent.success < 0.99;
      numbers.find(({ key }) => key === 'success')!.cell.classList.toggle('bad', isBad);
      setText(zone, host.priority === 0 ? host.zone : `${host.zone} p${host.priority}`.trim());
    },
  };
}
