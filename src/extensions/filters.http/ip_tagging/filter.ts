// Tells routes, filters behind it and upstreams which blocks of addresses a client is in. Worker thread; step 3 of the request flow.

import { utf8Bytes } from '../../../base/byte-text.ts';
import { parseIp, parsePrefix, prefixKey } from '../../../base/ip-number.ts';
import { PrefixTrie } from '../../../base/prefix-trie.ts';
import {
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  replaceField,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { IpTag, IpTaggingSettings } from './settings.ts';

const ENABLED = { key: 'ip_tagging.http_filter_enabled', default: { numerator: 100, denominator: 100 } };

interface Tag {
  /** Byte text. */
  readonly name: string;
  readonly hit: FilterCounter;
}

/** What all requests of a connection manager share. */
class IpTagging {
  readonly settings: IpTaggingSettings;
  readonly header: string;
  readonly isEnabled: () => boolean;
  readonly noHit: FilterCounter;
  readonly total: FilterCounter;
  readonly #blocks = new PrefixTrie<readonly Tag[]>();
  readonly #internalNames: readonly string[];

  constructor(settings: IpTaggingSettings, context: FilterContext) {
    this.settings = settings;
    this.header = settings.header ?? context.headerNames.ipTags;
    this.isEnabled = context.share(ENABLED);
    this.noHit = context.counter(settings.noHitCounter);
    this.total = context.counter(settings.totalCounter);
    this.#internalNames = context.headerNames.spellings('internal');
    const byBlock = new Map<string, Tag[]>();
    for (const tag of settings.tags) this.#add(tag, context, byBlock);
  }

  concerns(head: RequestHead): boolean {
    const { requests } = this.settings;
    if (requests === 'both') return true;
    const isInternal = this.#internalNames.some((name) => head.headerByName(name) === 'true');
    return isInternal === (requests === 'internal');
  }

  /** Of all blocks that hold the address, the largest first. */
  tagsOf(address: string): readonly Tag[] {
    const ip = parseIp(address);
    // A client that has none, as behind a pipe.
    return ip === undefined ? [] : [...new Set(this.#blocks.findAll(ip).flat())];
  }

  #add({ name, ranges, counter }: IpTag, context: FilterContext, byBlock: Map<string, Tag[]>): void {
    const tag: Tag = { name: utf8Bytes(name), hit: context.counter(counter) };
    for (const { ip, prefixLength } of ranges) {
      // The configuration has let none through that is no block.
      const block = parsePrefix(ip, prefixLength)!;
      const key = prefixKey(block);
      const there = byBlock.get(key);
      if (there !== undefined) there.push(tag);
      else {
        const tags = [tag];
        byBlock.set(key, tags);
        this.#blocks.set(block, tags);
      }
    }
  }
}

class IpTaggingFilter implements HttpFilter {
  readonly #tagging: IpTagging;
  readonly #callbacks: FilterCallbacks;

  constructor(tagging: IpTagging, callbacks: FilterCallbacks) {
    this.#tagging = tagging;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const { header, settings, total, noHit } = this.#tagging;
    const isMeant = this.#tagging.concerns(head) && this.#tagging.isEnabled();
    const tags = isMeant ? this.#tagging.tagsOf(this.#callbacks.clientAddress) : [];
    const said = settings.keepsOthers ? head.headerByName(header) : undefined;
    const isForged = !settings.keepsOthers && head.hasField(header);
    if (isMeant) {
      total.add(1);
      if (tags.length === 0) noHit.add(1);
      for (const { hit } of tags) hit.add(1);
    }
    if (tags.length > 0) {
      const names = tags.map(({ name }) => name).join(',');
      replaceField(head, header, said === undefined ? names : `${said},${names}`);
    } else if (isForged) head.removeField(header);
    // Routes may go by it.
    if (tags.length > 0 || isForged) this.#callbacks.settleRequestHead();
    return 'continue';
  }
}

export const IP_TAGGING_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile(settings, context) {
    const tagging = new IpTagging(settings as IpTaggingSettings, context);
    return (callbacks) => new IpTaggingFilter(tagging, callbacks);
  },
};
