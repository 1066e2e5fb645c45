// The live part of the home page. It runs in a browser, asks its server once a second while anybody can see it, and paints what
// is new. Everything that it knows comes from the server of the page, and nothing of it becomes markup.

import { ActionsPanel } from './actions.ts';
import { getJson } from './api.ts';
import type { Overview } from './data.ts';
import { el, setAttribute, setText } from './dom.ts';
import { duration } from './format.ts';
import { HeadPanel } from './head.ts';
import { PageHistory } from './history.ts';
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
  readonly #stats: StatsPanel;
  readonly #state: HTMLElement;
  readonly #badge = el('strong');
  readonly #version = el('span');
  readonly #age = el('span', { id: 'age', role: 'status' });
  #answeredMs = performance.now();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;

  constructor() {
    const { dataset } = document.body;
    this.#upstreams = new UpstreamsPanel(() => this.#askNow());
    this.#stats = new StatsPanel(dataset.filter ?? '');
    this.#state = document.getElementById('state')!;
    const actions = new ActionsPanel();
    const live = document.getElementById('live')!;
    live.replaceChildren(
      this.#head.element,
      this.#traffic.element,
      this.#upstreams.element,
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
    if (dataset.view === 'stats') this.#stats.focus();
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
      await Promise.all([this.#upstreams.updateHosts(), this.#stats.tick()]);
    } catch {
      // It may be back with the next question; until then the age says it.
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
  }

  #showAge(): void {
    const ageMs = performance.now() - this.#answeredMs;
    const isOld = ageMs > OLD_MS;
    setText(this.#age, isOld ? `no answer for ${duration(Math.floor(ageMs / 5000) * 5)}` : 'live');
    this.#age.classList.toggle('bad', isOld);
    document.body.classList.toggle('is-old', isOld);
  }
}

new Page();
