// A head as a filter of the user's own sees it: the one in the codec while the filter is being told of it, and a list of fields
// while the filter waits, when the codec holds others. What was changed meanwhile is done to the head before it goes on.

import type { EditableHead } from '../../../data-plane/index.ts';
import type { FilterHeaders, RequestHeaders, ResponseHeaders } from '../../../filter-modules/interface.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { isFraming, isPseudo, isValidField } from '../field-edits.ts';

const TARGET = /^[!-~]+$/;
const AUTHORITY = /^[!-.0-;=?-~]+$/;
const [LOWEST_STATUS, STATUSES_END] = [200, 600];

/** A name stands for all fields of it; without a value they go. */
interface Edit {
  readonly name: string;
  readonly value: string | null;
  readonly isAppended: boolean;
}

type Fields = readonly (readonly [name: string, value: string])[];

abstract class HeadView<Head extends EditableHead> implements FilterHeaders {
  /** Null while the filter waits, and once the head has gone on. */
  #live: Head | null = null;
  /** Null while the head is live, and once it has gone on. */
  #fields: Fields | null = null;
  readonly #edits: Edit[] = [];

  /** The filter is being told of this head. */
  show(head: Head): void {
    this.#live = head;
  }

  /** The filter has been told. @param isWaiting it keeps the head. */
  hide(isWaiting: boolean): void {
    if (isWaiting) this.#fields = this.#head().entries();
    this.#live = null;
  }

  /** The filter lets the head go on. @param held gives the head, as what waits for it. */
  release(held: () => Head | null): void {
    this.#fields = null;
    if (!this.isChanged) return;
    const head = held();
    if (head === null) return;
    for (const { name, value, isAppended } of this.#edits) {
      if (!isAppended) head.removeField(name);
      if (value !== null) head.append(name, value);
    }
    this.#edits.length = 0;
    this.writeFirstLine(head);
  }

  get isChanged(): boolean {
    return this.#edits.length > 0;
  }

  get(name: string): string | undefined {
    const key = name.toLowerCase();
    if (this.#live !== null) return this.#live.headerByName(key);
    const values = this.#waiting().flatMap(([own, value]) => (own === key ? [value] : []));
    return values.length === 0 ? undefined : values.join(', ');
  }

  has(name: string): boolean {
    const key = name.toLowerCase();
    return this.#live === null ? this.#waiting().some(([own]) => own === key) : this.#live.hasField(key);
  }

  entries(): Fields {
    return this.#live?.entries() ?? this.#waiting();
  }

  set(name: string, value: string): void {
    this.#edit(name, value, false);
  }

  append(name: string, value: string): void {
    this.#edit(name, value, true);
  }

  remove(name: string): void {
    this.#edit(name, null, false);
  }

  /** What stands in the first line, and was changed while the filter waited. */
  protected abstract writeFirstLine(head: Head): void;

  /** Null while the filter waits. @throws TypeError once the head has gone on. */
  protected get live(): Head | null {
    if (this.#live === null) this.#waiting();
    return this.#live;
  }

  #edit(name: string, value: string | null, isAppended: boolean): void {
    const key = name.toLowerCase();
    checkField(key, value);
    if (this.#live !== null) {
      if (!isAppended) this.#live.removeField(key);
      if (value !== null) this.#live.append(key, value);
      return;
    }
    const others = isAppended ? this.#waiting() : this.#waiting().filter(([own]) => own !== key);
    this.#fields = value === null ? others : [...others, [key, value]];
    this.#edits.push({ name: key, value, isAppended });
  }

  #head(): Head {
    if (this.#live === null) throw gone();
    return this.#live;
  }

  #waiting(): Fields {
    if (this.#fields === null) throw gone();
    return this.#fields;
  }
}

export class RequestHeadView extends HeadView<RequestHead> implements RequestHeaders {
  #method = '';
  #path = '';
  #authority = '';
  #newPath: string | null = null;
  #newAuthority: string | null = null;

  override show(head: RequestHead): void {
    super.show(head);
    this.#method = head.method;
    this.#path = head.path();
    this.#authority = head.authority();
  }

  override get isChanged(): boolean {
    return super.isChanged || this.#newPath !== null || this.#newAuthority !== null;
  }

  get method(): string {
    return this.#method;
  }

  get path(): string {
    return this.#path;
  }

  set path(path: string) {
    if (!TARGET.test(path) || path.includes('#')) throw new TypeError(`${JSON.stringify(path)} cannot be a path`);
    this.#path = path;
    if (this.live === null) this.#newPath = path;
    else this.live.replaceTarget(path);
  }

  get authority(): string {
    return this.#authority;
  }

  set authority(authority: string) {
    if (!AUTHORITY.test(authority)) throw new TypeError(`${JSON.stringify(authority)} cannot be an authority`);
    this.#authority = authority;
    if (this.live === null) this.#newAuthority = authority;
    else this.live.replaceHost(authority);
  }

  protected override writeFirstLine(head: RequestHead): void {
    if (this.#newPath !== null) head.replaceTarget(this.#newPath);
    if (this.#newAuthority !== null) head.replaceHost(this.#newAuthority);
    this.#newPath = null;
    this.#newAuthority = null;
  }
}

export class ResponseHeadView extends HeadView<EditableHead> implements ResponseHeaders {
  #status: number;
  /** Has the head at hand get another status; does nothing to an answer of the proxy itself. */
  readonly #write: (status: number) => void;
  #newStatus: number | null = null;

  constructor(status: number, write: (status: number) => void) {
    super();
    this.#status = status;
    this.#write = write;
  }

  override get isChanged(): boolean {
    return super.isChanged || this.#newStatus !== null;
  }

  get status(): number {
    return this.#status;
  }

  set status(status: number) {
    checkStatus(status);
    this.#status = status;
    if (this.live === null) this.#newStatus = status;
    else this.#write(status);
  }

  protected override writeFirstLine(): void {
    if (this.#newStatus !== null) this.#write(this.#newStatus);
    this.#newStatus = null;
  }
}

/** @throws TypeError for any but those that end a request. */
export function checkStatus(status: number): void {
  if (Number.isInteger(status) && status >= LOWEST_STATUS && status < STATUSES_END) return;
  throw new TypeError(`status: expected ${LOWEST_STATUS} to ${STATUSES_END - 1}, got ${String(status)}`);
}

/** @param name in lower case. @throws TypeError for what cannot stand there. */
export function checkField(name: string, value: string | null): void {
  const reason = name === 'host' ? ': change `authority`' : '';
  const isField = isValidField({ name, value: '', action: 'set' }) && !isPseudo(name);
  if (!isField || name === 'host' || isFraming(name)) {
    throw new TypeError(`${JSON.stringify(name)} is no header that a filter can change${reason}`);
  }
  if (value === null) return;
  if (typeof value !== 'string' || !isValidField({ name, value, action: 'set' })) {
    throw new TypeError(`this value of "${name}" cannot stand in a header`);
  }
}

function gone(): TypeError {
  return new TypeError('this head has gone on: a filter has it until it lets it go on, or its promise is settled');
}
