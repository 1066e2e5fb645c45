// External authorization: a service is asked about each request, and says whether it goes on, and how. Worker thread; step 3 of
// the request flow.
//
//   head ──► asked? ──no──► goes on, or is turned away
//              │ yes
//              ▼
//      (body kept back) ──► service ──200, OK──────► goes on, with what the service has changed
//                              ├──any other word───► turned away, with what the service says
//                              └──5xx, no answer───► turned away, or goes on (failure_mode_allow)

import { compileMetadataMatch, type MetadataTest } from '../../../base/metadata-match.ts';
import {
  type BodyData,
  type CallAnswer,
  type CallReceiver,
  type EditableHead,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  replaceField,
} from '../../../data-plane/index.ts';
import { HeadFlag, Method, type RequestHead } from '../../../wasm/http1.ts';
import { editFields, type FieldEdit, isFraming, isPseudo, isValidField } from '../field-edits.ts';
import { QueryParameters } from '../query-parameters.ts';
import { GrpcService } from './grpc-service.ts';
import { HttpService } from './http-service.ts';
import type { Service } from './service.ts';
import type { BodySettings, CheckSettings, ExtAuthzSettings } from './settings.ts';
import { type Allowed, type Denied, FAILED, type Verdict } from './verdict.ts';

const METADATA_NAMESPACE = 'envoy.filters.http.ext_authz';
const DENIED = 'ext_authz_denied';
const ERROR = 'ext_authz_error';
const INVALID = 'ext_authz_invalid';
const FAIL_OPEN_HEADER = 'auth-failure-mode-allowed';
/** In the scope of the cluster that a request goes to. */
const CLUSTER_COUNTS = {
  ok: 'ext_authz.ok',
  denied: 'ext_authz.denied',
  error: 'ext_authz.error',
  failureModeAllowed: 'ext_authz.failure_mode_allowed',
} as const;
/** What a service may send. */
const MIN_STATUS = 200;
const MAX_STATUS = 599;

/** What all requests of a connection manager share. */
class ExtAuthz {
  readonly settings: ExtAuthzSettings;
  readonly service: Service;
  readonly counters: Readonly<Record<keyof ExtAuthzSettings['stats'], FilterCounter>>;
  readonly #isDrawn: () => boolean;
  readonly #isMeant: MetadataTest | null;
  readonly failOpenName: string;
  readonly #context: FilterContext;

  constructor(settings: ExtAuthzSettings, context: FilterContext) {
    this.settings = settings;
    this.#context = context;
    const spellings = (name: string): readonly string[] => context.headerNames.spellings(name);
    const { service, stats } = settings;
    this.service =
      service.kind === 'http'
        ? new HttpService(service, settings, spellings)
        : new GrpcService(service, settings, spellings);
    this.counters = {
      ok: context.counter(stats.ok),
      denied: context.counter(stats.denied),
      error: context.counter(stats.error),
      disabled: context.counter(stats.disabled),
      failureModeAllowed: context.counter(stats.failureModeAllowed),
      invalid: context.counter(stats.invalid),
    };
    const { enabled, enabledMetadata } = settings;
    this.#isDrawn = enabled === null ? () => true : context.share(enabled);
    this.#isMeant = enabledMetadata === null ? null : compileMetadataMatch(enabledMetadata);
    this.failOpenName = spellings(FAIL_OPEN_HEADER)[0]!;
  }

  isEnabledFor(callbacks: FilterCallbacks): boolean {
    return this.#isDrawn() && (this.#isMeant === null || this.#isMeant(callbacks.facts(null).metadata('DYNAMIC')));
  }

  get deniesDisabled(): boolean {
    const { key, default: byDefault } = this.settings.deniesDisabled;
    return this.#context.runtime.flag(key) ?? byDefault;
  }
}

class ExtAuthzFilter implements HttpFilter, CallReceiver {
  decodeData?: (data: BodyData) => FilterStatus;
  decodeTrailers?: () => FilterStatus;
  readonly #authz: ExtAuthz;
  readonly #callbacks: FilterCallbacks;
  /** Null where the service does not get it. */
  readonly #body: BodySettings | null;
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #hasAsked = false;
  /** Still waits, or waits for the body. */
  #isHeld = false;
  /** What the client is told beside the response, or the answer in its place. */
  #response: readonly FieldEdit[] = [];

  constructor(authz: ExtAuthz, callbacks: FilterCallbacks) {
    this.#authz = authz;
    this.#callbacks = callbacks;
    this.#body = bodyOf(authz.settings.body, callbacks.routeSettings as readonly CheckSettings[]);
    if (this.#body === null) return;
    this.decodeData = (data) => this.#keep(data);
    this.decodeTrailers = () => this.#status(true);
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    const { counters, settings } = this.#authz;
    const callbacks = this.#callbacks;
    // Nobody has to be asked who may have what is not there.
    if (!callbacks.hasRoute) return 'continue';
    if (!this.#authz.isEnabledFor(callbacks)) {
      counters.disabled.add(1);
      if (!this.#authz.deniesDisabled) return 'continue';
      callbacks.reply({ status: settings.statusOnError, body: '', flag: 'UAEX', details: ERROR });
      return 'stop';
    }
    this.#isHeld = true;
    // What a tunnel carries is no body.
    const isTunnel = head.methodId === Method.CONNECT || (head.flags & HeadFlag.UPGRADE) !== 0;
    if (this.#body === null || isEnd || isTunnel) this.#ask(head, false);
    else callbacks.limitHeldRequest(heldLimit(this.#body, callbacks.bufferLimitBytes));
    return this.#isHeld ? this.#status(false) : 'continue';
  }

  encodeHeaders(head: EditableHead): FilterStatus {
    editFields(head, this.#response);
    return 'continue';
  }

  onAnswer(answer: CallAnswer): void {
    this.#obey(this.#authz.service.judge(answer));
  }

  onCallFailure(): void {
    this.#obey(FAILED);
  }

  #keep({ bytes, isEnd }: BodyData): FilterStatus {
    if (this.#hasAsked) return this.#status(false);
    const { maxBytes, allowsPart } = this.#body!;
    const room = maxBytes - this.#bytes;
    if (bytes.length <= room) this.#parts.push(Buffer.from(bytes));
    else if (allowsPart) this.#parts.push(Buffer.from(bytes.subarray(0, room)));
    this.#bytes += bytes.length;
    const isFull = allowsPart && this.#bytes >= maxBytes;
    // What is too long is answered 413 by what holds it.
    if (isEnd && this.#bytes > maxBytes && !allowsPart) return 'stop';
    return this.#status(isEnd || isFull, !isEnd || this.#bytes > maxBytes);
  }

  /** @param isThere all of the body that the service gets has come. */
  #status(isThere: boolean, isPartial = false): FilterStatus {
    if (isThere && !this.#hasAsked && this.#isHeld) this.#ask(this.#callbacks.heldRequestHead(), isPartial);
    if (!this.#isHeld) return 'continue';
    return this.#hasAsked ? 'stop-and-pause' : 'stop';
  }

  #ask(head: RequestHead, isPartial: boolean): void {
    this.#hasAsked = true;
    const callbacks = this.#callbacks;
    const { service } = this.#authz;
    const question = service.ask(head, {
      body: this.#body === null ? null : Buffer.concat(this.#parts),
      isPartial,
      isRaw: this.#body?.isRaw ?? false,
      facts: callbacks.facts(null),
      contexts: (callbacks.routeSettings as readonly CheckSettings[]).map(({ context }) => context),
      maxAnswerBytes: callbacks.bufferLimitBytes,
    });
    this.#parts.length = 0;
    callbacks.call(question, this);
  }

  #obey(verdict: Verdict): void {
    const { counters, settings } = this.#authz;
    if (verdict.kind === 'error') this.#fail();
    else if (settings.validates && !isValid(verdict)) {
      counters.invalid.add(1);
      this.#deny({ status: 500, body: '', flag: 'UAEX', details: INVALID });
    } else if (verdict.kind === 'ok') this.#allow(verdict);
    else this.#turnAway(verdict);
  }

  #fail(): void {
    const { settings, failOpenName } = this.#authz;
    this.#count('error');
    if (!settings.failsOpen) {
      this.#deny({ status: settings.statusOnError, body: '', flag: 'UAEX', details: ERROR });
      return;
    }
    this.#count('failureModeAllowed');
    if (settings.tellsFailOpen) replaceField(this.#callbacks.heldRequestHead(), failOpenName, 'true');
    this.#goOn();
  }

  #turnAway({ status, body, response, metadata }: Denied): void {
    this.#count('denied');
    if (metadata !== null) this.#callbacks.addMetadata(METADATA_NAMESPACE, metadata);
    this.#response = response;
    const isStatus = status >= MIN_STATUS && status <= MAX_STATUS;
    const text = body.toString('latin1');
    this.#deny({ status: isStatus ? status : 403, body: text, bytes: body, flag: 'UAEX', details: DENIED });
  }

  #deny(reply: Parameters<FilterCallbacks['reply']>[0]): void {
    this.#callbacks.reply(reply);
  }

  #allow(allowed: Allowed): void {
    const callbacks = this.#callbacks;
    this.#count('ok');
    if (allowed.metadata !== null) callbacks.addMetadata(METADATA_NAMESPACE, allowed.metadata);
    this.#response = allowed.response;
    if (allowed.edits.length > 0 || allowed.removed.length > 0 || allowed.parameters.length > 0) {
      const head = callbacks.heldRequestHead();
      editRequest(head, allowed);
      // The filters behind and the router read it as it is now.
      if (this.#authz.settings.clearsRoute) callbacks.settleRequestHead();
      else callbacks.settleEditedHead();
    }
    this.#goOn();
  }

  #goOn(): void {
    this.#isHeld = false;
    this.#callbacks.continueDecoding();
  }

  #count(name: keyof typeof CLUSTER_COUNTS): void {
    this.#authz.counters[name].add(1);
    if (this.#authz.settings.countsByCluster) this.#callbacks.targetCluster?.counter(CLUSTER_COUNTS[name]).add(1);
  }
}

/** Beyond it a request is answered 413. What the service gets in part never is: it is asked before. */
function heldLimit({ maxBytes, allowsPart }: BodySettings, bufferLimitBytes: number): number {
  return allowsPart ? Math.max(maxBytes, bufferLimitBytes) : maxBytes;
}

/** The nearest level that says something of it counts. */
function bodyOf(own: BodySettings | null, levels: readonly CheckSettings[]): BodySettings | null {
  for (const { ignoresBody, body } of levels) {
    if (ignoresBody) return null;
    if (body !== null) return body;
  }
  return own;
}

function editRequest(head: RequestHead, { edits, removed, parameters }: Allowed): void {
  let target = head.path();
  for (const edit of edits) {
    if (!isValidField(edit)) continue;
    if (edit.name === ':path') target = edit.value;
    else if (edit.name === ':authority' || edit.name === 'host') head.replaceHost(edit.value);
  }
  editFields(
    head,
    edits.filter(({ name }) => name !== 'host'),
  );
  for (const name of removed) if (!isPseudo(name) && name !== 'host' && !isFraming(name)) head.removeField(name);
  if (parameters.length > 0) target = withParameters(target, parameters);
  if (target !== head.path()) head.replaceTarget(target);
}

function withParameters(target: string, changes: Allowed['parameters']): string {
  const query = new QueryParameters(target);
  for (const [name, value] of changes) {
    query.remove(name);
    if (value !== null) query.add(name, value);
  }
  return query.target();
}

function isValid(verdict: Allowed | Denied): boolean {
  const ofRequest = verdict.kind === 'ok' ? verdict.edits : [];
  return [...ofRequest, ...verdict.response].every((edit) => isValidField(edit) && !isFraming(edit.name));
}

export const EXT_AUTHZ_FILTER: HttpFilterKind = {
  requestBody: 'reads',
  encodes: true,
  responseBody: 'none',
  compile(settings, context) {
    const authz = new ExtAuthz(settings as ExtAuthzSettings, context);
    return (callbacks) => new ExtAuthzFilter(authz, callbacks);
  },
};
