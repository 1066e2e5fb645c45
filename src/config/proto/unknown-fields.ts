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
  readonly #seen = new Set<string>();
  readonly #onCount: (() => void) | undefined;

  /** `onCount` runs whenever `count` grows, to feed the server's counter. */
  constructor(mode: UnknownFieldMode, onCount?: () => void) {
    this.mode = mode;
    this.#onCount = onCount;
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

  /** Judges one occurrence. `field` is a name, or a number where only the binary form is at hand. */
  judge(messageType: string, field: string): UnknownFieldVerdict {
    if (this.mode === 'ignore') return 'silent';
    const key = `${messageType} ${field}`;
    const isNew = !this.#seen.has(key);
    if (isNew) {
      this.#seen.add(key);
      this.#onCount?.();
    }
    if (this.mode === 'reject') return 'error';
    return isNew ? 'warning' : 'silent';
  }
}
