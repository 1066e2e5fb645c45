// Where requests go: a row for each cluster, which opens to its hosts.

import { getJson } from './api.ts';
import type { Breaker, Cluster, Host, Hosts, Overview } from './data.ts';
import { el, type Row, Rows, setAttribute, setText } from './dom.ts';
import { clockTime, duration, percent, short, whole } from './format.ts';
import type { PageHistory, Series } from './history.ts';
import { type Column, compareBy, Sorting } from './sorting.ts';
import { Spark } from './spark.ts';

/** Places in Cluster.points. */
const RQ = 0;
const RQ_5XX = 1;
const RETRIES = 2;
const P99 = 4;
/** Shares and rates are means of these. */
const MEAN_SECONDS = 10;

const COLUMNS: readonly Column[] = [
  { key: 'name', label: 'Cluster' },
  { key: 'hosts', label: 'Hosts', unit: 'healthy / all', isNumber: true },
  { key: 'requests', label: 'Requests', unit: '/s', isNumber: true },
  { key: 'history', label: '', unit: '5 min', isFixed: true },
  { key: 'success', label: 'Success', unit: '%', isNumber: true },
  { key: 'p99', label: 'p99', unit: 'ms', isNumber: true },
  { key: 'active', label: 'Active', isNumber: true },
  { key: 'retries', label: 'Retries', unit: '/s', isNumber: true },
  { key: 'breakers', label: 'Breakers', unit: 'fill', isNumber: true },
];

interface ClusterState {
  readonly cluster: Cluster;
  readonly series: Series;
}

type Value = (state: ClusterState) => number | string | null;

const VALUES: Readonly<Record<string, Value>> = {
  name: ({ cluster }) => cluster.name,
  hosts: ({ cluster }) => (cluster.members === 0 ? null : cluster.membersHealthy / cluster.members),
  requests: ({ series }) => series.mean(RQ, MEAN_SECONDS),
  success: ({ series }) => successOf(series),
  p99: ({ series }) => series.last(P99),
  active: ({ cluster }) => cluster.activeRequests,
  retries: ({ series }) => series.mean(RETRIES, MEAN_SECONDS),
  breakers: ({ cluster }) => Math.max(...cluster.breakers.map(fillOf)),
};

export class UpstreamsPanel {
  readonly element: HTMLElement;
  /** Part of the names that is asked for. */
  filter = '';
  readonly #sorting: Sorting;
  readonly #rows: Rows<ClusterState>;
  readonly #count = el('span', { class: 'quiet' });
  readonly #open = new Map<string, HostTable>();
  #states: readonly ClusterState[] = [];

  constructor(onFilter: () => void) {
    this.#sorting = new Sorting(COLUMNS, 'name', () => this.#show());
    const body = el('tbody');
    this.#rows = new Rows(
      body,
      ({ cluster }) => cluster.name,
      (state) => this.#row(state),
    );
    const filter = el('input', {
      type: 'search',
      id: 'cluster-filter',
      placeholder: 'part of a name',
      autocomplete: 'off',
      spellcheck: 'false',
      'aria-label': 'Clusters whose names hold',
      input: () => {
        this.filter = filter.value;
        onFilter();
      },
    });
    this.element = el(
      'section',
      { id: 'live-upstreams', 'aria-labelledby': 'upstreams-title' },
      el('div', { class: 'title' }, el('h2', { id: 'upstreams-title' }, 'Upstreams'), filter, this.#count),
      el(
        'div',
        { class: 'scroll' },
        el('table', { class: 'dense clusters' }, el('thead', {}, this.#sorting.head), body),
      ),
    );
  }

  update({ clusters, clusterCount }: Overview, history: PageHistory, added: number): void {
    const isCut = clusters.length < clusterCount;
    setText(
      this.#count,
      isCut ? `${clusters.length} of ${whole(clusterCount)}, those with something to tell` : `${whole(clusterCount)}`,
    );
    this.#states = clusters.map((cluster) => ({
      cluster,
      series: history.append('cluster', cluster.name, cluster.points, added),
    }));
    this.#show();
  }

  /** Brings the hosts of clusters that are open up to date. */
  async updateHosts(): Promise<void> {
    await Promise.all([...this.#open.values()].map((table) => table.load()));
  }

  #show(): void {
    const value = VALUES[this.#sorting.key]!;
    this.#rows.update([...this.#states].sort(compareBy(value, this.#sorting.isDescending)));
  }

  #row({ cluster: { name } }: ClusterState): Row<ClusterState> {
    const opener = el('button', { type: 'button', class: 'opener', 'aria-expanded': 'false' }, name);
    const hosts = el('td', { class: 'number' });
    const requests = el('td', { class: 'number' });
    const spark = new Spark();
    const success = el('td', { class: 'number' });
    const p99 = el('td', { class: 'number' });
    const active = el('td', { class: 'number' });
    const retries = el('td', { class: 'number' });
    const breakers = new BreakerBars();
    const cells = [
      hosts,
      requests,
      el('td', {}, spark.element),
      success,
      p99,
      active,
      retries,
      el('td', {}, breakers.element),
    ];
    const row = el('tr', {}, el('th', { scope: 'row' }, opener), ...cells);
    const inside = el('td', { colspan: COLUMNS.length });
    const below = el('tr', { class: 'inside', hidden: true }, inside);
    opener.addEventListener('click', () => {
      const isOpen = !this.#open.has(name);
      setAttribute(opener, 'aria-expanded', String(isOpen));
      below.hidden = !isOpen;
      if (isOpen) {
        const table = new HostTable(name);
        this.#open.set(name, table);
        inside.replaceChildren(table.element);
        void table.load();
      } else {
        this.#open.delete(name);
      }
    });
    return {
      elements: [row, below],
      update({ cluster, series }) {
        setText(hosts, `${whole(cluster.membersHealthy)} / ${whole(cluster.members)}`);
        hosts.classList.toggle('bad', cluster.membersHealthy < cluster.members);
        setText(requests, short(series.mean(RQ, MEAN_SECONDS)));
        spark.update(series.all(RQ), series.all(RQ_5XX));
        const share = successOf(series);
        setText(success, percent(share));
        success.classList.toggle('bad', share !== null && share < 0.99);
        setText(p99, short(series.last(P99)));
        setText(active, whole(cluster.activeRequests));
        setText(retries, short(series.mean(RETRIES, MEAN_SECONDS)));
        breakers.update(cluster.breakers);
      },
    };
  }
}

function successOf(series: Series): number | null {
  const [all, failed] = [series.mean(RQ, MEAN_SECONDS), series.mean(RQ_5XX, MEAN_SECONDS)];
  if (all === null || failed === null || all === 0) return null;
  return Math.max(0, 1 - failed / all);
}

function fillOf({ used, limit }: Breaker): number {
  return limit === 0 ? (used > 0 ? 1 : 0) : used / limit;
}

/** One bar for each breaker, with the fullest as a number. */
class BreakerBars {
  readonly element = el('div', { class: 'breakers' });
  readonly #number = el('span', { class: 'number' });
  readonly #bars: HTMLMeterElement[] = [];

  update(breakers: readonly Breaker[]): void {
    if (this.#bars.length !== breakers.length) {
      this.#bars.splice(
        0,
        Number.POSITIVE_INFINITY,
        ...breakers.map(() => el('meter', { min: 0, max: 1, low: 0.5, high: 0.8, optimum: 0 })),
      );
      this.element.replaceChildren(...this.#bars, this.#number);
    }
    for (const [at, breaker] of breakers.entries()) {
      const text = `${breaker.name}: ${whole(breaker.used)} of ${whole(breaker.limit)}`;
      setAttribute(this.#bars[at]!, 'value', Math.min(1, fillOf(breaker)).toFixed(3));
      setAttribute(this.#bars[at]!, 'title', text);
      setAttribute(this.#bars[at]!, 'aria-label', text);
    }
    const fullest = Math.max(0, ...breakers.map(fillOf));
    setText(this.#number, `${percent(Math.min(1, fullest))} %`);
    this.element.classList.toggle('bad', fullest >= 0.8);
  }
}

/** Since when a host has been counted: rates come from two answers. */
interface Counted {
  readonly atMs: number;
  readonly host: Host;
}

const HOST_COLUMNS: readonly Column[] = [
  { key: 'address', label: 'Host' },
  { key: 'health', label: 'Health' },
  { key: 'reason', label: 'Reason', isFixed: true },
  { key: 'since', label: 'Since', isFixed: true },
  { key: 'zone', label: 'Zone' },
  { key: 'weight', label: 'Weight', isNumber: true },
  { key: 'connections', label: 'Conns', isNumber: true },
  { key: 'active', label: 'Active', isNumber: true },
  { key: 'rate', label: 'Requests', unit: '/s', isNumber: true },
  { key: 'total', label: 'Requests', unit: 'all', isNumber: true },
  { key: 'success', label: 'Success', unit: '%', isNumber: true },
  { key: 'ejections', label: 'Ejections', isNumber: true },
];

const HOST_VALUES: Readonly<Record<string, (state: HostState) => number | string | null>> = {
  address: ({ host }) => host.address,
  health: ({ host }) => ({ unhealthy: 0, degraded: 1, healthy: 2 })[host.health],
  zone: ({ host }) => host.zone,
  weight: ({ host }) => host.weight,
  connections: ({ host }) => host.activeConnections,
  active: ({ host }) => host.activeRequests,
  rate: ({ rate }) => rate,
  total: ({ host }) => host.requests,
  success: ({ host }) => shareOf(host),
  ejections: ({ host }) => host.ejections,
};

interface HostState {
  readonly host: Host;
  readonly rate: number | null;
}

class HostTable {
  readonly element: HTMLElement;
  readonly #cluster: string;
  readonly #rows: Rows<HostState>;
  readonly #sorting: Sorting;
  readonly #note = el('p', { class: 'quiet' }, 'Asking for the hosts …');
  readonly #before = new Map<string, Counted>();
  #states: readonly HostState[] = [];

  constructor(cluster: string) {
    this.#cluster = cluster;
    this.#sorting = new Sorting(HOST_COLUMNS, 'health', () => this.#show());
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
    setText(
      this.#note,
      hosts.length < hostCount ? `${hosts.length} of ${whole(hostCount)} hosts, the unhealthy first` : '',
    );
    const atMs = performance.now();
    this.#states = hosts.map((host) => {
      const before = this.#before.get(host.address);
      this.#before.set(host.address, { atMs, host });
      const rate = before && (1000 * (host.requests - before.host.requests)) / (atMs - before.atMs);
      return { host, rate: rate === undefined || rate < 0 ? null : rate };
    });
    this.#show();
  }

  #show(): void {
    this.#rows.update([...this.#states].sort(compareBy(HOST_VALUES[this.#sorting.key]!, this.#sorting.isDescending)));
  }
}

function shareOf({ successes, errors }: Host): number | null {
  return successes + errors === 0 ? null : successes / (successes + errors);
}

function hostRow({ host: { address, hostname } }: HostState): Row<HostState> {
  const health = el('td');
  const reason = el('td', { class: 'reason' });
  const since = el('td');
  const zone = el('td');
  const numbers = Array.from({ length: 7 }, () => el('td', { class: 'number' }));
  const name = hostname === '' || hostname === address ? undefined : el('span', { class: 'quiet' }, ` ${hostname}`);
  const row = el('tr', {}, el('th', { scope: 'row' }, address, name), health, reason, since, zone, ...numbers);
  return {
    elements: [row],
    update({ host, rate }) {
      setText(health, host.health);
      health.className = `health ${host.health}`;
      setText(reason, host.reason);
      setText(
        since,
        host.sinceMs === null ? '' : `${clockTime(host.sinceMs)}, ${duration((Date.now() - host.sinceMs) / 1000)}`,
      );
      setText(zone, host.priority === 0 ? host.zone : `${host.zone} p${host.priority}`.trim());
      const texts = [
        whole(host.weight),
        whole(host.activeConnections),
        whole(host.activeRequests),
        short(rate),
        whole(host.requests),
        percent(shareOf(host)),
        whole(host.ejections),
      ];
      for (const [at, text] of texts.entries()) setText(numbers[at]!, text);
    },
  };
}
