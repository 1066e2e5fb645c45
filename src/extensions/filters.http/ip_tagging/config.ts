// IPTagging message → settings of the ip_tagging filter.

import {
  convertCidrRange,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  supported,
  supportedWhole,
} from '../../../config/index.ts';
import type { IpTag, IpTaggingSettings } from './settings.ts';

const FILTER = 'proxy.extensions.filters.http.ip_tagging.v3.IPTagging';
// By the numbers of their enums.
const REQUESTS = ['both', 'internal', 'external'] as const;
const APPEND = 1;
const NO_HIT = 'ip_tagging.no_hit';
const TOTAL = 'ip_tagging.total';
const FRAMING: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade']);
/** What cannot stand in the value of a header, or would be taken for two tags. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\x00-\x1f\x7f,]/;

const whole = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, supported()]));

export const IP_TAGGING: HttpFilterManifest = {
  support: {
    [FILTER]: { otherwise: rejected(), fields: whole('request_type', 'ip_tags', 'ip_tag_header') },
    [`${FILTER}.IPTag`]: { otherwise: rejected(), fields: { ip_tag_name: supported(), ip_list: supportedWhole() } },
    [`${FILTER}.IpTagHeader`]: { otherwise: rejected(), fields: whole('header', 'action') },
  },
  convert(message, at, { faults }) {
    const { request_type: type, ip_tags, ip_tag_header: header } = message as MessageTypes[typeof FILTER];
    const tags = ip_tags.map(({ ip_tag_name: name, ip_list }, index): IpTag => {
      const here = `${at}.ip_tags[${index}]`;
      if (name === '' || UNSAFE.test(name)) {
        faults.error(`${here}.ip_tag_name`, `${JSON.stringify(name)} cannot be told in a header`);
      }
      const ranges = ip_list.flatMap((range, at) => convertCidrRange(range, `${here}.ip_list[${at}]`, faults) ?? []);
      return { name, ranges, counter: `ip_tagging.${name}.hit` };
    });
    const name = header?.header.toLowerCase() ?? null;
    if (name !== null && (FRAMING.has(name) || name.startsWith(':'))) {
      faults.error(`${at}.ip_tag_header.header`, `"${header!.header}" cannot be set here`);
    }
    const settings: IpTaggingSettings = {
      requests: REQUESTS[type]!,
      tags,
      header: name,
      keepsOthers: header?.action === APPEND,
      noHitCounter: NO_HIT,
      totalCounter: TOTAL,
    };
    const counters = [...new Set([...tags.map(({ counter }) => counter), NO_HIT, TOTAL])];
    return { name: 'filters.http.ip_tagging', settings, counters };
  },
};
