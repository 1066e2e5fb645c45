// A service that is asked with the request's own head, and judges by the status of its answer.

import {
  type CallAnswer,
  type CallRequest,
  compileByteMatch,
  compileRetryPolicy,
  type RetryPolicy,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { type FieldAction, type FieldEdit, isFraming } from '../field-edits.ts';
import type { Question, Service } from './service.ts';
import type { ExtAuthzSettings, HttpServiceSettings, NameMatches } from './settings.ts';
import { FAILED, type Verdict } from './verdict.ts';

const PARTIAL_BODY = 'auth-partial-body';
const TO_REMOVE = 'auth-headers-to-remove';
/** Of an answer that turns a request away, whatever else is said. */
const ALWAYS_TO_CLIENT = new Set(['location', 'www-authenticate']);

type NameTest = (name: string) => boolean;

export class HttpService implements Service {
  readonly #settings: HttpServiceSettings;
  readonly #retry: RetryPolicy | undefined;
  readonly #tells: NameTest;
  readonly #toUpstream: NameTest;
  readonly #appended: NameTest;
  readonly #toClient: NameTest;
  readonly #toClientOnSuccess: NameTest;
  readonly #toMetadata: NameTest;
  /** Under every name that the headers may go by. */
  readonly #removalNames: readonly string[];
  readonly #partialBodyName: string;

  /** @param spellings of a header of proxies. */
  constructor(
    settings: HttpServiceSettings,
    { allowedHeaders, disallowedHeaders }: ExtAuthzSettings,
    spellings: (name: string) => readonly string[],
  ) {
    this.#settings = settings;
    this.#retry = settings.retry === null ? undefined : compileRetryPolicy(settings.retry);
    const allows = nameTest(allowedHeaders);
    const forbids = nameTest(disallowedHeaders);
    this.#tells = (name) => (name === 'authorization' || allows(name)) && !forbids(name);
    this.#toUpstream = nameTest(settings.toUpstream);
    this.#appended = nameTest(settings.appendedToUpstream);
    const toClient = nameTest(settings.toClient);
    this.#toClient = settings.toClient === null ? () => true : (name) => ALWAYS_TO_CLIENT.has(name) || toClient(name);
    this.#toClientOnSuccess = nameTest(settings.toClientOnSuccess);
    this.#toMetadata = nameTest(settings.toMetadata);
    this.#removalNames = spellings(TO_REMOVE);
    this.#partialBodyName = spellings(PARTIAL_BODY)[0]!;
  }

  ask(head: RequestHead, { body, isPartial, maxAnswerBytes }: Question): CallRequest {
    const { cluster, timeoutMs, pathPrefix, add } = this.#settings;
    const added = new Set(add.map(([name]) => name));
    const fields = head.entries().filter(([name]) => this.#tells(name) && isTold(name) && !added.has(name));
    const partial = body === null ? [] : [[this.#partialBodyName, String(isPartial)] as const];
    return {
      cluster,
      method: head.method,
      path: pathPrefix + head.path(),
      host: head.authority(),
      fields: [...fields, ...partial, ...add],
      body: body ?? Buffer.alloc(0),
      isGrpc: false,
      timeoutMs,
      maxAnswerBytes,
      retry: this.#retry,
    };
  }

  judge({ status, head, body }: CallAnswer): Verdict {
    if (status >= 500) return FAILED;
    const all = head.entries();
    // What is said to this proxy goes to nobody else.
    const fields = all.filter(([name]) => !this.#removalNames.includes(name));
    const metadata = fields.filter(([name]) => this.#toMetadata(name));
    const told = metadata.length === 0 ? null : Object.fromEntries(metadata);
    if (status !== 200) {
      const response = edits(fields, (name) => isAnswered(name) && this.#toClient(name), 'set');
      return { kind: 'denied', status, body, response: eachOnItsOwn(response), metadata: told };
    }
    const lists = all.filter(([name]) => this.#removalNames.includes(name));
    const removed = lists.flatMap(([, value]) => value.split(','));
    return {
      kind: 'ok',
      edits: [
        ...eachOnItsOwn(edits(fields, this.#toUpstream, 'set')),
        ...edits(fields, this.#appended, 'append-if-present'),
      ],
      removed: removed.map((name) => name.trim().toLowerCase()).filter((name) => name !== ''),
      parameters: [],
      response: edits(fields, (name) => isAnswered(name) && this.#toClientOnSuccess(name), 'append'),
      metadata: told,
    };
  }
}

/** Host stands in the question already. */
function isTold(name: string): boolean {
  return name !== 'host' && !isFraming(name);
}

/** Date and server are this proxy's own. */
function isAnswered(name: string): boolean {
  return name !== 'date' && name !== 'server' && !isFraming(name);
}

function nameTest(matches: NameMatches): NameTest {
  const tests = (matches ?? []).map(compileByteMatch);
  return (name) => tests.some((passes) => passes(name));
}

function edits(
  fields: readonly (readonly [name: string, value: string])[],
  passes: NameTest,
  action: FieldAction,
): FieldEdit[] {
  return fields.filter(([name]) => passes(name)).map(([name, value]) => ({ name, value, action }));
}

/** The second field of a name stands beside the first one, which has taken the place of what there was: a Set-Cookie is never joined. */
function eachOnItsOwn(list: readonly FieldEdit[]): FieldEdit[] {
  const seen = new Set<string>();
  return list.map((edit): FieldEdit => {
    if (seen.has(edit.name)) return { ...edit, action: 'append' };
    seen.add(edit.name);
    return edit;
  });
}
