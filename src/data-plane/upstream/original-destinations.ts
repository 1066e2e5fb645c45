// The hosts of an ORIGINAL_DST cluster in this worker: requests and connections name theirs by an address.

import { parseIpAddress } from '../../base/address.ts';
import { jsonAt } from '../../base/json.ts';
import type { OriginalDstSettings } from '../../snapshot/index.ts';
import { CLUSTER_STATS } from '../../stats/index.ts';
import { firstValueReader, type ReadHeader } from '../route/header-matcher.ts';
import type { RouteRequest } from '../route/route-request.ts';
import type { WorkerContext } from '../worker-context.ts';
import { Destinations, type DestinationsOwner, type MeantDestination, type NamedHost } from './destinations.ts';
import type { PickContext } from './load-balancer/pick-context.ts';

const { original_dst_host_invalid, original_dst_host_overflow } = CLUSTER_STATS.index;

export class OriginalDestinations<Host extends NamedHost> extends Destinations<Host> {
  readonly #settings: OriginalDstSettings;
  /** Null where no header counts. */
  readonly #readHeader: ReadHeader | null;
  /** What picks are to know of hosts, by their addresses as text. */
  readonly #byText = new Map<string, PickContext>();

  constructor(context: WorkerContext, owner: DestinationsOwner, settings: OriginalDstSettings) {
    super(context, owner, null);
    this.#settings = settings;
    this.#readHeader = settings.header === null ? null : firstValueReader(settings.header);
  }

  /**
   * Where metadata say, else where its header does, else where its client meant to go. Metadata or a header that say nothing
   * of use are counted, and do not count.
   */
  override contextOf(request: RouteRequest | null, meant: MeantDestination | null): PickContext | null {
    const said = this.#settings.metadata === undefined ? null : this.#contextSaid(this.#metadataText(request, meant));
    if (said !== null) return said;
    const named = this.#readHeader === null || request === null ? null : this.#contextSaid(this.#readHeader(request));
    if (named !== null) return named;
    const destination = meant?.originalDestination ?? null;
    return destination === null ? null : this.#contextMeant(destination.ip, destination.port);
  }

  override add(host: Host): void {
    super.add(host);
    const { destination, key } = host;
    if (destination.kind === 'ip') this.#byText.set(key, this.contextAt(destination.ip, destination.port));
  }

  override remove(host: Host): void {
    this.#byText.delete(host.key);
    super.remove(host);
  }

  protected override noteOverflow(): void {
    this.count(original_dst_host_overflow);
  }

  /** Null for nothing, and for what is no address, which is counted. */
  #contextSaid(text: string | undefined): PickContext | null {
    if (text === undefined) return null;
    const context = this.#contextNamed(text);
    if (context === null) this.count(original_dst_host_invalid);
    return context;
  }

  /** Of the request, else of its connection; undefined for what is no text. */
  #metadataText(request: RouteRequest | null, meant: MeantDestination | null): string | undefined {
    const { namespace, path } = this.#settings.metadata!;
    for (const metadata of [request?.sender?.dynamicMetadata, meant?.metadata]) {
      const value = jsonAt(metadata?.[namespace], path);
      if (typeof value === 'string') return value;
    }
    return undefined;
  }

  /** Null for text that is no address. Hot: a host that is known costs no text and no allocation. */
  #contextNamed(text: string): PickContext | null {
    const known = this.#settings.port === 0 ? this.#byText.get(text) : undefined;
    if (known !== undefined) return known;
    const address = parseIpAddress(text);
    return address === undefined ? null : this.#contextMeant(address.ip, address.port);
  }

  #contextMeant(ip: string, named: number): PickContext {
    const { port } = this.#settings;
    return this.contextAt(ip, port === 0 ? named : port);
  }
}
