// The reflection objects of the schema, made when they are asked for: of 675 messages a configuration uses some hundred, and
// to make them all is a tenth of a start. One part is a message or enum of a package, with all that is declared inside
// it; it brings along the parts that its fields can hold. What is in an Any is asked for by its type URL.
// Field types in the bundle are absolute (scripts/build-proto.mjs), so that parts are known without looking for them.

import protobuf from 'protobufjs/light.js';
import { encodeAtNeed } from './lone-encoder.ts';
import type { MessageOptions } from './options.ts';

export interface NamedMessage {
  /** Without a leading dot. */
  readonly fullName: string;
  readonly v2Name: string | undefined;
}

/** A namespace, message or enum of the bundle. */
interface Declaration {
  readonly options?: object;
  readonly fields?: Readonly<Record<string, { readonly type: string }>>;
  readonly values?: object;
  readonly nested?: Readonly<Record<string, Declaration>>;
}

interface Part {
  readonly packageName: string;
  readonly name: string;
  readonly declaration: Declaration;
  isMade: boolean;
}

export class SchemaParts {
  readonly root = new protobuf.Root();
  /** Every message, nested ones included. */
  readonly messages: NamedMessage[] = [];
  /** By the full names of its messages and enums. */
  readonly #parts = new Map<string, Part>();

  constructor(bundle: protobuf.INamespace) {
    this.#index(bundle as Declaration, '', undefined);
  }

  /** @param fullName of `messages`. */
  message(fullName: string): protobuf.Type {
    const isNew = this.#make(this.#parts.get(fullName)!);
    if (isNew) this.root.resolveAll();
    return this.root.lookupType(`.${fullName}`);
  }

  makeAll(): void {
    for (const part of this.#parts.values()) this.#make(part);
    this.root.resolveAll();
  }

  #index({ nested = {} }: Declaration, path: string, around: Part | undefined): void {
    for (const [name, declaration] of Object.entries(nested)) {
      const fullName = path === '' ? name : `${path}.${name}`;
      const isMessage = declaration.fields !== undefined;
      let part = around;
      if (isMessage || declaration.values !== undefined) {
        part ??= { packageName: path, name, declaration, isMade: false };
        this.#parts.set(fullName, part);
      }
      const options = declaration.options as MessageOptions | undefined;
      if (isMessage) this.messages.push({ fullName, v2Name: options?.['(proxy.v2_name)'] });
      this.#index(declaration, fullName, part);
    }
  }

  /** With what it refers to. @returns whether there was anything to be made. */
  #make(part: Part): boolean {
    if (part.isMade) return false;
    part.isMade = true;
    const { packageName, name, declaration } = part;
    const namespace = packageName === '' ? this.root : this.root.define(packageName);
    namespace.addJSON({ [name]: declaration as protobuf.AnyNestedObject });
    const made = namespace.get(name)!;
    encodeAtNeed(made);
    keepFullName(made);
    for (const referred of this.#referred(declaration)) this.#make(referred);
    return true;
  }

  *#referred({ fields = {}, nested = {} }: Declaration): Generator<Part> {
    for (const { type } of Object.values(fields)) {
      // Scalars have no dot.
      const part = type.startsWith('.') ? this.#parts.get(type.slice(1)) : undefined;
      if (part !== undefined) yield part;
    }
    for (const declaration of Object.values(nested)) yield* this.#referred(declaration);
  }
}

/** The library puts the name together each time that it is asked for, and every message that is read asks. */
function keepFullName(made: protobuf.ReflectionObject): void {
  Object.defineProperty(made, 'fullName', { value: made.fullName });
  if (made instanceof protobuf.Namespace) for (const nested of made.nestedArray) keepFullName(nested);
}
