// Which method a request means, and the message that path, query and body make for it. One for the requests of a connection manager,
// or of a route that has settings of its own.

import type Protobuf from 'protobufjs/light.js';
import type { JsonObject, JsonValue } from '../../../base/json.ts';
import { isJsonObject } from '../../../base/json.ts';
import { withEnumNames } from './enum-names.ts';
import { ServiceMessages } from './messages.ts';
import { matchTemplate, queryPairs, splitPath, valueAt } from './path-template.ts';
import type { MethodBinding, TranscoderSettings } from './settings.ts';

/** What path and query say of a request: names of fields from it inwards, and their values in JSON. */
export interface Bound {
  readonly path: readonly string[];
  readonly value: JsonValue;
}

export interface MatchedCall {
  readonly binding: MethodBinding;
  readonly bound: readonly Bound[];
  readonly requestType: Protobuf.Type;
  readonly responseType: Protobuf.Type;
  /** The body, or the answer's, has no form of JSON: it is what a google.api.HttpBody holds. */
  readonly takesRaw: boolean;
  readonly givesRaw: boolean;
}

/** The request is at fault; the text is for its client. */
export class RequestFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false };

export class Transcoder {
  readonly settings: TranscoderSettings;
  readonly messages: ServiceMessages;
  readonly #bindings: ReadonlyMap<string, readonly MethodBinding[]>;
  /** Behind colons of paths, whatever method of HTTP they go with. */
  readonly #verbs: ReadonlySet<string>;

  constructor(settings: TranscoderSettings) {
    this.settings = settings;
    this.messages = new ServiceMessages(settings.descriptor, settings.print);
    this.#bindings = Map.groupBy(settings.bindings, ({ verb }) => verb);
    this.#verbs = new Set(settings.bindings.map(({ template }) => template.verb));
  }

  /** @returns null for a request that is not for any of the services. @throws RequestFault where it should have been. */
  match(verb: string, target: string): MatchedCall | null {
    const question = target.indexOf('?');
    const path = question < 0 ? target : target.slice(0, question);
    const split = splitPath(path, (text) => this.settings.takesAnyVerb || this.#verbs.has(text));
    for (const binding of this.#bindings.get(verb) ?? []) {
      const parts = matchTemplate(binding.template, split);
      if (parts !== null) return this.#call(binding, parts, question < 0 ? '' : target.slice(question + 1));
    }
    if (this.settings.refusesUnknownMethods) throw new RequestFault(404, `no method is called by ${verb} ${path}`);
    return null;
  }

  /** The one message of a request, or the first of several. @param json what its body holds. @throws RequestFault. */
  first(call: MatchedCall, json: JsonValue | undefined): Uint8Array {
    const { body } = call.binding;
    let request: Record<string, JsonValue> = {};
    if (body !== null && json !== undefined) {
      if (body.length > 0) this.#put(call.requestType, request, body, json);
      else if (isJsonObject(json)) request = { ...json };
      else throw new RequestFault(400, 'the body is no JSON object');
    }
    for (const { path, value } of call.bound) this.#put(call.requestType, request, path, value, true);
    return this.#encode(call.requestType, request);
  }

  /** Another message of a stream. */
  next(call: MatchedCall, json: JsonValue): Uint8Array {
    const request: Record<string, JsonValue> = {};
    const { body } = call.binding;
    if (body === null || body.length === 0) {
      if (!isJsonObject(json)) throw new RequestFault(400, 'an element of the body is no JSON object');
      return this.#encode(call.requestType, json);
    }
    this.#put(call.requestType, request, body, json);
    return this.#encode(call.requestType, request);
  }

  #call(binding: MethodBinding, parts: readonly string[], query: string): MatchedCall | null {
    const { method, template } = binding;
    const requestType = this.messages.type(method.requestType);
    const responseType = this.messages.type(method.responseType);
    const bound: Bound[] = [];
    const { keptEscapes, plusIsSpace, ignoredParameters, ignoresUnknownParameters } = this.settings;
    const lists = new Map<string, JsonValue[]>();
    for (const [name, text] of queryPairs(query, plusIsSpace)) {
      if (ignoredParameters.includes(name)) continue;
      const field = fieldAt(requestType, name.split('.'));
      if (field === null) {
        if (ignoresUnknownParameters) continue;
        if (this.settings.refusesUnknownParameters) throw new RequestFault(400, `unknown query parameter ${name}`);
        return null;
      }
      const value = jsonOf(field.field, text);
      const key = field.path.join('.');
      if (field.field.repeated) {
        const list = lists.get(key);
        if (list !== undefined) {
          list.push(value);
          continue;
        }
        const items = [value];
        lists.set(key, items);
        bound.push({ path: field.path, value: items });
      } else bound.push({ path: field.path, value });
    }
    for (const variable of template.variables) {
      const field = fieldAt(requestType, variable.field)!;
      bound.push({ path: field.path, value: jsonOf(field.field, valueAt(variable, parts, keptEscapes)) });
    }
    return {
      binding,
      bound,
      requestType,
      responseType,
      takesRaw: binding.body !== null && this.messages.isRaw(this.messages.typeAt(method.requestType, binding.body)),
      givesRaw: this.messages.isRaw(this.messages.typeAt(method.responseType, binding.responseBody)),
    };
  }

  /** @param isBound by path or query, which the body must perhaps not name, too. */
  #put(
    type: Protobuf.Type,
    request: Record<string, JsonValue>,
    path: readonly string[],
    value: JsonValue,
    isBound = false,
  ): void {
    const field = type.fields[path[0]!]!;
    const jsonName = (field as unknown as { readonly jsonName: string }).jsonName;
    const before = request[field.name] ?? request[jsonName];
    delete request[jsonName];
    if (path.length > 1) {
      const inner = before !== undefined && isJsonObject(before) ? { ...before } : {};
      this.#put(field.resolvedType as Protobuf.Type, inner, path.slice(1), value, isBound);
      request[field.name] = inner;
      return;
    }
    if (isBound && before !== undefined && this.settings.refusesCollisions) {
      throw new RequestFault(400, `${field.name} stands both in the body and in path or query`);
    }
    request[field.name] = value;
  }

  #encode(type: Protobuf.Type, json: JsonObject): Uint8Array {
    try {
      return this.messages.encode(type, this.settings.ignoresEnumCase ? withEnumNames(type, json) : json, false);
    } catch (error) {
      throw new RequestFault(400, String((error as Error).message));
    }
  }
}

/** By the names of definitions or of JSON. Null for what is not there, or has no form in a path. */
function fieldAt(
  type: Protobuf.Type,
  names: readonly string[],
): { readonly field: Protobuf.Field; readonly path: readonly string[] } | null {
  let at: Protobuf.Type | null = type;
  let field: Protobuf.Field | undefined;
  const path: string[] = [];
  for (const name of names) {
    const fields: readonly Protobuf.Field[] = at?.fieldsArray ?? [];
    field = fields.find((own) => own.name === name || (own as unknown as { jsonName: string }).jsonName === name);
    if (field === undefined || (field.repeated && path.length < names.length - 1)) return null;
    path.push(field.name);
    at = isMessage(field) ? (field.resolvedType as Protobuf.Type) : null;
  }
  return field === undefined || field.map ? null : { field, path };
}

function jsonOf(field: Protobuf.Field, text: string): JsonValue {
  const name = isMessage(field) ? (field.resolvedType as Protobuf.Type).fullName : '';
  if (field.type === 'bool' || name === '.google.protobuf.BoolValue') {
    const value = BOOLEANS[text];
    if (value === undefined) throw new RequestFault(400, `${field.name}: "${text}" is neither true nor false`);
    return value;
  }
  if (field.resolvedType !== null && !isMessage(field) && /^-?\d+$/.test(text)) return Number(text);
  return text;
}

function isMessage({ resolvedType }: Protobuf.Field): boolean {
  return resolvedType !== null && 'fieldsArray' in resolvedType;
}
