// What happens when a field is met that the schema does not have (spec 2.7: --allow-unknown-static-fields,
// --reject-unknown-dynamic-fields, --ignore-unknown-dynamic-fields). One policy object lives as long as the
// process and serves every resource of its kind, so that "first use" means first use.
// Main thread.

/**
 * `reject`: an error at every occurrence. `warn`: counted and warned of once per message type and field.
 * `ignore`: neither.
 */
export type UnknownFieldMode = 'reject' | 'warn' | 'ignore';

export type UnknownFieldVerdict = 'error' | 'warning' | 'silent';

export class UnknownFieldPolicy {
  readonly mode: UnknownFieldMode;
  readonly #seen: Set<string>;
  readonly #onCount: (() => void) | undefined;

  /**
   * @param onCount runs whenever `count` grows, to feed the server's counter.
   * @param seen by another policy, for which this one judges in another thread.
   */
  constructor(mode: UnknownFieldMode, onCount?: () => void, seen: Iterable<string> = []) {
    this.mode = mode;
    this.#onCount = onCount;
    this.#seen = new Set(seen);
  }

  /** For the bootstrap and what it holds. */
  static forStatic(options: { readonly allowUnknownStaticFields: boolean }): UnknownFieldPolicy {
    return new UnknownFieldPolicy(options.allowUnknownStaticFields ? 'warn' : 'reject');
  }

  /** For resources that discovery brings. Rejecting wins over ignoring when both are asked for. */
  static forDynamic(
    options: { readonly rejectUnknownDynamicFields: boolean; readonly ignoreUnknownDynamicFields: boolean },
    onCount?: () => void,
  ): UnknownFieldPolicy {
    if (options.rejectUnknownDynamicFields) return new UnknownFieldPolicy('reject', onCount);
    return new UnknownFieldPolicy(options.ignoreUnknownDynamicFields ? 'ignore' : 'warn', onCount);
  }

  /** Different unknown fields met so far: the value of server.static_ or server.dynamic_unknown_fields. */
  get count(): number {
    return this.#seen.size;
  }

  /** What has been met so far, for another policy. */
  get seen(): ReadonlySet<string> {
    return this.#seen;
  }

  /** Another policy has met something for this one. */
  met(key: string): void {
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#onCount?.();
  }

  /** Judges one occurrence. `field` is a name, or a number where only the binary form is at hand. */
  judge(messageType: string, field: string): UnknownFieldVerdict {
    if (this.mode === 'ignore') return 'silent';
    const key = `${messageType} ${field}`;
    const isNew = !this.#seen.has(key);
    this.met(key);
    if (this.mode === 'reject') return 'error';
    return isNew ? 'warning' : 'silent';
  }
}
