// Makes metadata of headers and cookies, for filters behind it and for logs. Worker thread; step 3 of the request flow.

import type { JsonValue } from '../../../base/json.ts';
import { compileSubstitution, type Substitute } from '../../../base/regex.ts';
import {
  type EditableHead,
  type FilterCallbacks,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  requestCookie,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { HeaderToMetadataSettings, MetadataRule, MetadataTarget } from './settings.ts';

/** Longer ones are left out. */
const MAX_VALUE_BYTES = 8 * 1024;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

interface Target extends MetadataTarget {
  readonly substitute: Substitute | null;
}

interface Rule {
  readonly settings: MetadataRule;
  readonly onPresent: Target | null;
  readonly onMissing: Target | null;
}

interface Rules {
  readonly request: readonly Rule[];
  readonly response: readonly Rule[];
}

class HeaderToMetadataFilter implements HttpFilter {
  readonly #own: Rules;
  readonly #callbacks: FilterCallbacks;

  constructor(own: Rules, callbacks: FilterCallbacks) {
    this.#own = own;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    for (const rule of this.#rules.request) {
      const { source, name } = rule.settings;
      const found = source === 'cookie' ? requestCookie(head, name) || undefined : valueIn(head, name);
      this.#apply(rule, head, found);
    }
    return 'continue';
  }

  encodeHeaders(head: EditableHead): FilterStatus {
    for (const rule of this.#rules.response) this.#apply(rule, head, valueIn(head, rule.settings.name));
    return 'continue';
  }

  /** The nearest level that says anything. */
  get #rules(): Rules {
    const [rules = this.#own] = this.#callbacks.routeSettings as readonly Rules[];
    return rules;
  }

  #apply({ settings, onPresent, onMissing }: Rule, head: EditableHead, found: string | undefined): void {
    const target = found === undefined ? onMissing : onPresent;
    if (target !== null) {
      const value = valueFor(target, found ?? '');
      if (value !== undefined) this.#callbacks.addMetadata(target.namespace, { [target.key]: value });
    }
    if (settings.isRemoved && found !== undefined) head.removeField(settings.name);
  }
}

/** Parts of the first line count as headers. */
function valueIn(head: EditableHead & Partial<RequestHead>, name: string): string | undefined {
  switch (name) {
    case ':path':
      return head.path?.();
    case ':method':
      return head.method;
    case ':authority':
    case 'host':
      return head.authority?.();
    default:
      return head.headerByName(name);
  }
}

/** @returns undefined for what cannot be written, or is empty. */
function valueFor(target: Target, found: string): JsonValue | undefined {
  let bytes = found;
  if (target.substitute !== null) bytes = target.substitute(bytes);
  // Those of the configuration are text, others what has come over the wire.
  let text = target.value || Buffer.from(bytes, 'latin1').toString();
  if (text === '' || text.length > MAX_VALUE_BYTES) return undefined;
  if (target.isBase64) {
    if (!BASE64.test(text)) return undefined;
    text = Buffer.from(text, 'base64').toString();
  }
  if (!target.isNumber) return text;
  return NUMBER.test(text) ? Number(text) : undefined;
}

function compileRules({ request, response }: HeaderToMetadataSettings): Rules {
  return { request: request.map(compileRule), response: response.map(compileRule) };
}

function compileRule(settings: MetadataRule): Rule {
  return { settings, onPresent: compileTarget(settings.onPresent), onMissing: compileTarget(settings.onMissing) };
}

function compileTarget(target: MetadataTarget | null): Target | null {
  if (target === null) return null;
  const { rewrite } = target;
  // The configuration has let no pattern through that does not compile.
  const substitute = rewrite && (compileSubstitution(rewrite.pattern, rewrite.substitution).substitute ?? null);
  return { ...target, substitute };
}

export const HEADER_TO_METADATA_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  compileForRoute: (settings) => compileRules(settings as HeaderToMetadataSettings),
  compile(settings) {
    const own = compileRules(settings as HeaderToMetadataSettings);
    return (callbacks) => new HeaderToMetadataFilter(own, callbacks);
  },
};
