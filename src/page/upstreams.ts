// Where requests go: a row for each cluster, which opens to its hosts. Those that do badly come first.

import type { Breaker, Cluster, Conditions, Overview } from './data.ts';
import { el, type Row, Rows, setAttribute, setText } from './dom.ts';
import { percent, short, whole } from './format.ts';
import { MEAN_SECONDS, type PageHistory, type Series } from './history.ts';
import { HostTable } from './hosts.ts';
import { type Column, compareBy, Sorting } from './sorting.ts';
import { Spark } from './spark.ts';

/** Places in Cluster.points. */
const RQ = 0;
const RQ_5XX = 1;
const RETRIES = 2;
const P99 = 4;
const CX = 5;
const CX_FAILED = 6;

const CONDITIONS: Conditions = ['down', 'failing', 'impaired', 'well', 'idle'];

const COLUMNS: readonly Column[] = [
  { key: 'name', label: 'Cluster' },
  { key: 'condition', label: 'Condition' },
  { key: 'hosts', label: 'Hosts', unit: 'up / all', isNumber: true },
  { key: 'requests', label: 'Requests', unit: '/s', isNumber: true },
  { key: 'history', label: '', unit: '5 min', isFixed: true },
  { key: 'success', label: 'Success', unit: '%', isNumber: true },
  { key: 'p99', label: 'p99', unit: 'ms', isNumber: true },
  { key: 'active', label: 'Active', isNumber: true },
  { key: 'connections', label: 'Conns', isNumber: true },
  { key: 'unreached', label: 'Unreached', unit: '/s', isNumber: true },
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
  // Clusters without requests are as well as others: they stay among them.
  condition: ({ cluster }) => Math.min(CONDITIONS.indexOf(cluster.condition), CONDITIONS.indexOf('well')),
  hosts: ({ cluster }) => (cluster.members === 0 ? null : cluster.membersHealthy / cluster.members),
  requests: ({ series }) => series.mean(RQ, MEAN_SECONDS),
  success: ({ series }) => successOf(series),
  p99: ({ series }) => series.last(P99),
  active: ({ cluster }) => cluster.activeRequests,
  connections: ({ cluster }) => cluster.activeConnections,
  unreached: ({ series }) => series.mean(CX_FAILED, MEAN_SECONDS),
  retries: ({ series }) => series.mean(RETRIES, MEAN_SECONDS),
  breakers: ({ cluster }) => Math.max(...cluster.breakers.map(fillOf)),
};

/** Columns that are a number and nothing else. */
const NUMBERS = COLUMNS.filter(({ key, isNumber }) => isNumber && key !== 'breakers');

const TEXTS: Readonly<Record<string, (state: ClusterState) => string>> = {
  hosts: ({ cluster }) => `${whole(cluster.membersHealthy)} / ${whole(cluster.members)}`,
  requests: ({ series }) => short(series.mean(RQ, MEAN_SECONDS)),
  success: ({ series }) => percent(successOf(series)),
  p99: ({ series }) => short(series.last(P99)),
  active: ({ cluster }) => whole(cluster.activeRequests),
  connections: ({ cluster }) => whole(cluster.activeConnections),
  unreached: ({ series }) => short(series.mean(CX_FAILED, MEAN_SECONDS)),
  retries: ({ series }) => short(series.mean(RETRIES, MEAN_SECONDS)),
};

const IS_BAD: Readonly<Record<string, (state: ClusterState) => boolean>> = {
  hosts: ({ cluster }) => cluster.membersHealthy < cluster.members,
  success: ({ series }) => (successOf(series) ?? 1) < 0.99,
  unreached: ({ series }) => (series.mean(CX_FAILED, MEAN_SECONDS) ?? 0) > 0,
};

export class UpstreamsPanel {
  readonly element: HTMLElement;
  /** Part of the names that is asked for. */
  filter = '';
  readonly #sorting: Sorting;
  readonly #rows: Rows<ClusterState>;
  readonly #count = el('span', { class: 'quiet' });
  readonly #conditions = new ConditionCounts();
  readonly #empty = el('p', { class: 'quiet', hidden: true });
  readonly #open = new Map<string, HostTable>();
  #states: readonly ClusterState[] = [];

  constructor(onFilter: () => void) {
    this.#sorting = new Sorting(COLUMNS, 'condition', () => this.#show());
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
      el(
        'div',
        { class: 'title' },
        el('h2', { id: 'upstreams-title' }, 'Upstreams'),
        filter,
        this.#count,
        this.#conditions.element,
      ),
      el(
        'div',
        { class: 'scroll' },
        el('table', { class: 'dense clusters' }, el('thead', {}, this.#sorting.head), body),
      ),
      this.#empty,
    );
  }

  update({ clusters, clusterCount, conditions }: Overview, history: PageHistory, added: number): void {
    const isCut = clusters.length < clusterCount;
    setText(
      this.#count,
      isCut ? `${clusters.length} of ${whole(clusterCount)}, the worst and busiest` : `${whole(clusterCount)}`,
    );
    this.#conditions.update(conditions);
    this.#empty.hidden = clusters.length > 0;
    setText(this.#empty, this.filter === '' ? 'There are no clusters.' : 'No cluster has such a name.');
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
    const badge = el('span', { class: 'badge' });
    const reason = el('span', { class: 'why' });
    const spark = new Spark();
    const breakers = new BreakerBars();
    const numbers = NUMBERS.map(({ key }) => ({ key, cell: el('td', { class: 'number' }) }));
    const cells = new Map<string, HTMLElement>(numbers.map(({ key, cell }) => [key, cell]));
    cells.set('condition', el('td', { class: 'condition' }, badge, reason));
    cells.set('history', el('td', {}, spark.element));
    cells.set('breakers', el('td', {}, breakers.element));
    const others = COLUMNS.slice(1).map(({ key }) => cells.get(key)!);
    const row = el('tr', {}, el('th', { scope: 'row' }, opener), ...others);
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
      update(state) {
        const { cluster, series } = state;
        row.className = `is-${cluster.condition}`;
        setText(badge, cluster.condition);
        setText(reason, cluster.reason);
        for (const { key, cell } of numbers) {
          setText(cell, TEXTS[key]!(state));
          cell.classList.toggle('bad', IS_BAD[key]?.(state) ?? false);
        }
        showHistory(spark, series);
        breakers.update(cluster.breakers);
      },
    };
  }
}

/** Requests and 5xx; where there were no requests, connections and those that failed. */
function showHistory(spark: Spark, series: Series): void {
  const [requests, connections] = [series.all(RQ), series.all(CX)];
  const isRaw = !requests.some((value) => value !== null && value > 0);
  if (isRaw) spark.update(connections, series.all(CX_FAILED));
  else spark.update(requests, series.all(RQ_5XX));
}

/** How many clusters are in each condition, the bad ones in their colours. */
class ConditionCounts {
  readonly element = el('ul', { class: 'conditions', 'aria-label': 'Clusters by condition' });
  readonly #items = new Map(CONDITIONS.map((condition) => [condition, el('li', { class: `of-${condition}` })]));

  constructor() {
    this.element.append(...this.#items.values());
  }

  update(counts: Overview['conditions']): void {
    for (const [condition, item] of this.#items) {
      item.hidden = counts[condition] === 0;
      setText(item, `${whole(counts[condition])} ${condition}`);
    }
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
