// The live part of the home page. It runs in a browser, asks its server once a second while anybody can see it, and paints what
// is new. Everything that it knows comes from the server of the page, and nothing of it becomes markup.

import { ActionsPanel } from './actions.ts';
import { getJson } from './api.ts';
import type { Overview } from './data.ts';
import { el, setAttribute, setText } from './dom.ts';
import { clockTime, duration } from './format.ts';
import { HeadPanel } from './head.ts';
import { PageHistory } from './history.ts';
import { SourcesPanel } from './sources.ts';
import { StatsPanel } from './stats.ts';
import { themeSwitch } from './theme.ts';
import { TrafficPanel } from './traffic.ts';
import { UpstreamsPanel } from './upstreams.ts';

const PAUSE_MS = 1000;
/** Without an answer for so long the page says that it is old. */
const OLD_MS = 4000;
/** By their names in the bar; forms of the commands are called after their paths. */
const SECTIONS = {
  Traffic: 'live-traffic',
  Upstreams: 'live-upstreams',
  Stats: 'live-stats',
  Actions: 'live-actions',
  Commands: 'commands',
};

class Page {
  readonly #history = new PageHistory();
  readonly #head = new HeadPanel();
  readonly #traffic = new TrafficPanel();
  readonly #upstreams: UpstreamsPanel;
  readonly #sources = new SourcesPanel();
  readonly #stats: StatsPanel;
  readonly #state: HTMLElement;
  readonly #badge = el('strong');
  readonly #version = el('span');
  readonly #age = el('span', { id: 'age' });
  readonly #outage = el('p', { id: 'outage', role: 'alert', hidden: true });
  #answeredMs = performance.now();
  /** Why the last question had no answer; empty when it had one. */
  #failure = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;
  /** The reader has asked for the stats, and has not been brought there. */
  #beginsAtStats: boolean;

  constructor() {
    const { dataset } = document.body;
    this.#upstreams = new UpstreamsPanel(() => this.#askNow());
    this.#stats = new StatsPanel(dataset.filter ?? '');
    this.#state = document.getElementById('state')!;
    const actions = new ActionsPanel();
    const live = document.getElementById('live')!;
    live.before(this.#outage);
    live.replaceChildren(
      this.#head.element,
      this.#traffic.element,
      this.#upstreams.element,
      this.#sources.element,
      this.#stats.element,
      actions.element,
    );
    const links = Object.entries(SECTIONS)
      .filter(([, id]) => document.getElementById(id)?.hidden === false)
      .map(([name, id]) => el('a', { href: `#${id}` }, name));
    document
      .querySelector('header')!
      .append(el('nav', { 'aria-label': 'Sections' }, ...links), this.#age, themeSwitch());
    document.addEventListener('visibilitychange', () => this.#askNow());
    document.body.classList.add('is-live');
    this.#beginsAtStats = dataset.view === 'stats';
    this.#askNow();
  }

  #askNow(): void {
    clearTimeout(this.#timer);
    void this.#ask();
  }

  async #ask(): Promise<void> {
    if (document.hidden || this.#isAsking) return;
    this.#isAsking = true;
    const startedMs = performance.now();
    try {
      const query = new URLSearchParams({ since: String(this.#history.tick) });
      if (this.#upstreams.filter !== '') query.set('clusters', this.#upstreams.filter);
      this.#show(await getJson<Overview>(`page/overview?${query}`));
      this.#failure = '';
      await Promise.all([this.#upstreams.updateHosts(), this.#stats.tick()]);
    } catch (error) {
      // It may be back with the next question; until then the page says what stands in the way.
      this.#failure = error instanceof Error ? error.message : String(error);
    } finally {
      this.#isAsking = false;
    }
    this.#showAge();
    this.#timer = setTimeout(() => void this.#ask(), Math.max(100, PAUSE_MS - (performance.now() - startedMs)));
  }

  #show(overview: Overview): void {
    this.#answeredMs = performance.now();
    const { head, tick, times } = overview;
    this.#history.begin(tick, times);
    const name = head.state.replaceAll('_', ' ');
    setText(this.#badge, name);
    this.#badge.className = `state state-${head.state.toLowerCase()}`;
    document.title = head.state === 'LIVE' ? 'weir admin' : `${name} · weir admin`;
    const [revision = '', release = ''] = head.version.split('/');
    setText(this.#version, `${release} ${revision.slice(0, 8)}${head.isReadOnly ? ' · read-only' : ''}`);
    setAttribute(this.#version, 'title', head.version);
    if (this.#badge.parentElement === null) this.#state.replaceChildren(this.#badge, this.#version);
    this.#head.update(overview);
    this.#traffic.update(overview.listeners, this.#history, times.length);
    this.#upstreams.update(overview, this.#history, times.length);
    this.#sources.update(overview);
    // What stands above has its height now.
    if (this.#beginsAtStats) this.#stats.focus();
    this.#beginsAtStats = false;
  }

  #showAge(): void {
    const ageMs = performance.now() - this.#answeredMs;
    const isOld = ageMs > OLD_MS;
    setText(this.#age, isOld ? 'old' : 'live');
    this.#age.classList.toggle('bad', isOld);
    document.body.classList.toggle('is-old', isOld);
    this.#outage.hidden = !isOld;
    if (!isOld) return;
    const since = clockTime(Date.now() - ageMs);
    // In steps: each change of an alert is read out.
    const text = `No answer for ${duration(Math.floor(ageMs / 5000) * 5)} (${this.#failure}).`;
    setText(
      this.#outage,
      `${text} What stands here is of ${since}; the page goes on by itself when the server answers.`,
    );
  }
}

new Page();
