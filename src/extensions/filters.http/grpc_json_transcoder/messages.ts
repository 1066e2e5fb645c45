// Messages of the services between JSON and the bytes of protocol buffers, by their definitions. Worker thread.

import { createRequire } from 'node:module';
import type Protobuf from 'protobufjs/light.js';
import type { JsonObject, JsonValue } from '../../../base/json.ts';
import type { PrintSettings } from './settings.ts';

type Light = typeof Protobuf & { readonly Root: { readonly fromDescriptor: FromDescriptor } };
type FromDescriptor = (bytes: Uint8Array, options: { readonly keepCase: boolean }) => Protobuf.Root;
type ProtoJson = typeof import('protobufjs/ext/protojson.js');
type Message = Readonly<Record<string, unknown>>;

/** What a body is that has no form of JSON. */
const HTTP_BODY = '.google.api.HttpBody';
const WELL_KNOWN = '.google.protobuf.';

export interface RawBody {
  readonly contentType: string;
  readonly data: Buffer;
}

export class ServiceMessages {
  readonly #root: Protobuf.Root;
  readonly #json: ProtoJson;
  readonly #print: PrintSettings;
  readonly #isCanonical: boolean;

  constructor(descriptor: Uint8Array, print: PrintSettings) {
    const { Root } = createRequire(import.meta.url)('protobufjs/light.js') as Light;
    createRequire(import.meta.url)('protobufjs/ext/descriptor.js');
    this.#json = createRequire(import.meta.url)('protobufjs/ext/protojson.js') as ProtoJson;
    this.#root = Root.fromDescriptor(descriptor, { keepCase: true });
    this.#root.resolveAll();
    this.#print = print;
    this.#isCanonical = !print.printsDefaults && !print.printsEnumNumbers && !print.keepsNames;
  }

  /** @param name full, with a dot before it. */
  type(name: string): Protobuf.Type {
    return this.#root.lookupType(name);
  }

  /** The type of a field, from a message inwards; null for one that is no message. */
  typeAt(name: string, path: readonly string[]): Protobuf.Type | null {
    let type: Protobuf.Type | null = this.type(name);
    for (const field of path) {
      const resolved: unknown = type?.fields[field]?.resolvedType;
      type = isType(resolved) ? resolved : null;
    }
    return type;
  }

  isRaw(type: Protobuf.Type | null): boolean {
    return type?.fullName === HTTP_BODY;
  }

  /** @throws Error that says what does not fit. */
  encode(type: Protobuf.Type, json: JsonObject, ignoresUnknown: boolean): Uint8Array {
    return type.encode(this.#json.fromJson(type, json, { ignoreUnknownFields: ignoresUnknown })).finish();
  }

  /** JSON of a message, or of one of its fields. @throws Error for bytes that are none of this type. */
  text(type: Protobuf.Type, bytes: Uint8Array, path: readonly string[]): string {
    const value = this.#valueAt(type, type.decode(bytes) as unknown as Message, path);
    return JSON.stringify(value ?? null, null, this.#print.indents ? 1 : undefined);
  }

  /** Of a google.api.HttpBody. */
  raw(type: Protobuf.Type, bytes: Uint8Array, path: readonly string[]): RawBody {
    let message = type.decode(bytes) as unknown as Message;
    for (const field of path) message = (message[field] ?? {}) as Message;
    const { content_type: contentType = '', data = new Uint8Array() } = message as {
      readonly content_type?: string;
      readonly data?: Uint8Array;
    };
    return { contentType, data: Buffer.from(data) };
  }

  /** A google.rpc.Status in JSON; undefined for bytes that are none. */
  status(bytes: Uint8Array): JsonValue | undefined {
    try {
      const type = this.#root.lookupType('.google.rpc.Status');
      return this.#json.toJson(type, type.decode(bytes)) as JsonValue;
    } catch {
      return undefined;
    }
  }

  #valueAt(type: Protobuf.Type, message: Message, path: readonly string[]): unknown {
    const [name, ...rest] = path;
    if (name === undefined) return this.#valueOf(type, message);
    const field = type.fields[name]!;
    const value = message[name];
    if (rest.length > 0 && isType(field.resolvedType)) {
      return this.#valueAt(field.resolvedType, (value ?? {}) as Message, rest);
    }
    // As the one field of a message of its own, so that lists and maps read as anywhere.
    const [only] = Object.values(this.#fields(type, { [name]: value }, true));
    return only;
  }

  #valueOf(type: Protobuf.Type, message: Message): unknown {
    if (this.#isCanonical || type.fullName.startsWith(WELL_KNOWN)) {
      return this.#json.toJson(type, message);
    }
    return this.#fields(type, message, false);
  }

  #fields(type: Protobuf.Type, message: Message, isOne: boolean): Record<string, unknown> {
    const printed: Record<string, unknown> = {};
    for (const field of type.fieldsArray) {
      if (isOne && !Object.hasOwn(message, field.name)) continue;
      const key = this.#print.keepsNames ? field.name : (field as unknown as { readonly jsonName: string }).jsonName;
      const value = message[field.name];
      const isThere = Object.hasOwn(message, field.name) && value !== null && value !== undefined;
      if (field.map) {
        const entries = Object.entries((isThere ? value : {}) as Message);
        if (entries.length === 0 && !this.#print.printsDefaults) continue;
        printed[key] = Object.fromEntries(entries.map(([name, one]) => [name, this.#single(field, one)]));
      } else if (field.repeated) {
        const items = (isThere ? value : []) as readonly unknown[];
        if (items.length === 0 && !this.#print.printsDefaults) continue;
        printed[key] = items.map((one) => this.#single(field, one));
      } else if (isThere || (this.#print.printsDefaults && hasDefault(field))) {
        printed[key] = this.#single(field, isThere ? value : field.defaultValue);
      }
    }
    return printed;
  }

  #single(field: Protobuf.Field, value: unknown): unknown {
    const { resolvedType } = field;
    if (isType(resolvedType)) return this.#valueOf(resolvedType, value as Message);
    if (resolvedType !== null && !this.#print.printsEnumNumbers) {
      return (resolvedType as Protobuf.Enum).valuesById[value as number] ?? value;
    }
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
    if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
    // 64 bits are text in JSON.
    if (/64$/.test(field.type)) return String(value);
    return Array.isArray(value) && field.type === 'bytes' ? '' : value;
  }
}

/** Messages and members of a oneof are there or not. */
function hasDefault(field: Protobuf.Field): boolean {
  return field.partOf === null && !isType(field.resolvedType);
}

function isType(type: unknown): type is Protobuf.Type {
  return typeof type === 'object' && type !== null && 'fieldsArray' in type;
}
