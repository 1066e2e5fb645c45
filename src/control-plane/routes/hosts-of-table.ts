// The virtual hosts of one route table that come for themselves, if it says that some do, from where it says. Main thread.

import { headOf, protoSchema, type RoutesView } from '../../config/index.ts';
import type { ConfigSourceSettings, RouteTableSnapshot, VirtualHostSnapshot } from '../../snapshot/index.ts';
import type { ReferringDependencies } from '../discovery/feed.ts';
import type { Companion, MainResource } from '../discovery/published-kind.ts';
import type { DemandAnswer } from '../open-demands.ts';
import { settingsText } from '../same-settings.ts';
import { DiscoveredHosts } from './discovered-hosts.ts';

export class HostsOfTable implements Companion<RoutesView, RouteTableSnapshot> {
  readonly #table: MainResource<RoutesView, RouteTableSnapshot>;
  /** Of their stats, with its dot. */
  readonly #prefix: string;
  readonly #deps: ReferringDependencies;
  /** Null where all virtual hosts stand in the table. */
  #hosts: DiscoveredHosts<RoutesView> | null = null;
  /** Where they come from, as text; empty for nowhere. */
  #source = '';

  constructor(table: MainResource<RoutesView, RouteTableSnapshot>, prefix: string, deps: ReferringDependencies) {
    this.#table = table;
    this.#prefix = prefix;
    this.#deps = deps;
  }

  get isReady(): boolean {
    return this.#hosts?.isReady !== false;
  }

  /** A request wants one that the table has not. @param host in lower case. */
  demand(host: string, answer: DemandAnswer): void {
    if (this.#hosts === null) answer(false);
    else this.#hosts.demand(host, answer);
  }

  whole(view: RoutesView, table: RouteTableSnapshot): RouteTableSnapshot {
    return withHosts(table, this.#hosts?.of(view) ?? []);
  }

  begin(tables: ReadonlyMap<RoutesView, RouteTableSnapshot>, message: Uint8Array) {
    const [settings] = tables.values();
    const source = settings?.hostDiscovery;
    const text = source === undefined ? '' : settingsText(source)!;
    const kept = text === this.#source ? this.#hosts : null;
    const hosts = kept?.reread(message, this.#table.views());
    return {
      whole: (view: RoutesView, table: RouteTableSnapshot) => withHosts(table, kept?.of(view, hosts) ?? []),
      done: () => {
        if (hosts !== undefined) kept!.replace(hosts);
        else this.#follow(source, text);
      },
    };
  }

  wholeMessage(message: Uint8Array): Uint8Array {
    const hosts = this.#hosts?.messages() ?? [];
    if (hosts.length === 0) return message;
    const type = protoSchema().messageType('proxy.config.route.v3.RouteConfiguration');
    // Messages in their binary form add up; lists grow by that.
    return Buffer.concat([message, ...hosts.flatMap((host) => [headOf(type, 'virtual_hosts', host.length), host])]);
  }

  stop(): void {
    this.#hosts?.stop();
  }

  close(): void {
    this.#hosts?.close();
  }

  /** They come from elsewhere from now on, or from nowhere. */
  #follow(source: ConfigSourceSettings | undefined, text: string): void {
    this.#hosts?.close();
    this.#hosts = null;
    this.#source = text;
    if (source === undefined) return;
    this.#hosts = new DiscoveredHosts(this.#table, source, this.#prefix, this.#deps);
    this.#hosts.start();
  }
}

function withHosts(table: RouteTableSnapshot, hosts: readonly VirtualHostSnapshot[]): RouteTableSnapshot {
  return hosts.length === 0 ? table : { ...table, virtualHosts: [...table.virtualHosts, ...hosts] };
}
