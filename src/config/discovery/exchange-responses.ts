// Responses of management servers, bytes → what they say of themselves at once, and their resources one by one, for whoever asks: a
// response may hold hundreds of thousands, and nobody is to wait for all of them. Main thread.

import type { ConfigFault } from '../fault.ts';
import type { UnpackedAny } from '../proto/any.ts';
import { FieldCursor } from '../proto/field-cursor.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import { textAt, textOf, valuesOf } from '../proto/wire-parts.ts';
import { durationMs } from '../resources/units.ts';
import type { ConfigDocument } from '../source/config-document.ts';
import { type DiscoveryService, discoveryServiceOf } from './discovery-services.ts';

const RESPONSE = 'proxy.service.discovery.v3.DiscoveryResponse';
const DELTA_RESPONSE = 'proxy.service.discovery.v3.DeltaDiscoveryResponse';
const RESOURCE = 'proxy.service.discovery.v3.Resource';
const ANY = 'google.protobuf.Any';
const RESOURCE_NAME = 'proxy.service.discovery.v3.ResourceName';
const CONTROL_PLANE = 'proxy.config.core.v3.ControlPlane';

/** One of a response, unread. */
export interface RawResource {
  /** Empty where it has none, or is of another type. */
  readonly name: string;
  /** What it calls itself, where it comes by another name. */
  readonly otherName?: string;
  /** Under which others may have asked for it. */
  readonly aliases?: readonly string[];
  /** Empty where resources have none for themselves. */
  readonly version: string;
  readonly typeUrl: string;
  /** Undefined for a heartbeat: the one that there is goes on living. */
  readonly bytes: Uint8Array | undefined;
  /** How long it lives unless it comes again; undefined for ever. */
  readonly ttlMs: number | undefined;
  /** Of its bytes, once somebody has asked for it (fingerprint.ts); undefined before. */
  digest?: string | undefined;
  /** As its text has said it; absent where it has come in its binary form. */
  readonly opened?: OpenedText;
}

/** A resource that has come as text. */
export interface OpenedText {
  /** Undefined where it could not be opened. */
  readonly content: UnpackedAny | undefined;
  /** Its place in the response. */
  readonly at: string;
  /** Met when the response was read. */
  readonly faults: readonly ConfigFault[];
  readonly document: ConfigDocument;
}

export interface ResponseHead {
  readonly typeUrl: string;
  /** Undefined for a type that nobody can ask for. */
  readonly service: DiscoveryService | undefined;
  readonly version: string;
  readonly nonce: string;
  /** Who the server says it is; empty where it does not. */
  readonly controlPlane: string;
  /** Names of those that there are no longer. */
  readonly removed: readonly string[];
}

/** One whose resources are looked at one by one. */
export interface RawResponse extends ResponseHead {
  /** Each walk looks at all of them anew: once, and not in one go. */
  readonly resources: Iterable<RawResource>;
}

/** One that has been gone through. */
export interface ReadResponse extends ResponseHead {
  readonly resources: readonly RawResource[];
}

interface Any {
  readonly type_url: string;
  readonly value: Uint8Array;
}

const NOTHING = new Uint8Array(0);
/** What stands in the place of one cannot be read; its bytes are of no type. */
const NO_RESOURCE: RawResource = { name: '', version: '', typeUrl: '', bytes: NOTHING, ttlMs: undefined };

type ReadResource = (bytes: Buffer, anys: AnyReader, own: OwnType) => RawResource;

/** @throws for bytes that are no such message. A resource that is none shows when it is looked at. */
export function openStateResponse(bytes: Uint8Array): RawResponse {
  return openResponse(bytes, RESPONSE, 'version_info', stateResource);
}

/** @throws as openStateResponse. */
export function openChangesResponse(bytes: Uint8Array): RawResponse {
  return openResponse(bytes, DELTA_RESPONSE, 'system_version_info', wrapped);
}

/** All but the resources, which are passed over. */
function openResponse(bytes: Uint8Array, typeName: string, versionField: string, read: ReadResource): RawResponse {
  const schema = protoSchema();
  const { fieldsArray, fields } = schema.messageType(typeName);
  const names = new Map(fieldsArray.map(({ id, name }) => [id, name]));
  const resources = fields.resources!.id;
  const head = { version: '', typeUrl: '', nonce: '', controlPlane: '' };
  const removed = new Set<string>();
  const cursor = new FieldCursor(bytes);
  while (cursor.next()) {
    if (cursor.number === resources || !cursor.isDelimited) continue;
    switch (names.get(cursor.number)) {
      case versionField:
        head.version = cursor.text;
        break;
      case 'type_url':
        head.typeUrl = cursor.text;
        break;
      case 'nonce':
        head.nonce = cursor.text;
        break;
      case 'control_plane':
        head.controlPlane = textOf(schema.messageType(CONTROL_PLANE), cursor.value, 'identifier');
        break;
      case 'removed_resources':
        removed.add(cursor.text);
        break;
      case 'removed_resource_names':
        removed.add(textOf(schema.messageType(RESOURCE_NAME), cursor.value, 'name'));
        break;
    }
  }
  const own = new OwnType(head.typeUrl);
  const { service } = own;
  const anys = new AnyReader(head.typeUrl);
  return {
    ...head,
    service,
    removed: [...removed],
    resources: {
      *[Symbol.iterator]() {
        for (const value of valuesOf(bytes, resources)) yield read(value, anys, own);
      },
    },
  };
}

/** Reads the Any of resources, most of which have the type of their response. */
class AnyReader {
  readonly #usualUrl: string;
  readonly #usualBytes: Buffer;
  readonly #typeUrl: number;
  readonly #value: number;

  constructor(usualUrl: string) {
    this.#usualUrl = usualUrl;
    this.#usualBytes = Buffer.from(usualUrl);
    const { type_url: typeUrl, value } = protoSchema().messageType(ANY).fields;
    this.#typeUrl = typeUrl!.id;
    this.#value = value!.id;
  }

  /** @throws as FieldCursor.next. */
  read(bytes: Buffer): Any {
    const cursor = new FieldCursor(bytes);
    let typeUrl = '';
    let value: Uint8Array = NOTHING;
    while (cursor.next()) {
      if (!cursor.isDelimited) continue;
      if (cursor.number === this.#value) value = cursor.value;
      // One text for all of them.
      else if (cursor.number === this.#typeUrl) typeUrl = cursor.is(this.#usualBytes) ? this.#usualUrl : cursor.text;
    }
    return { type_url: typeUrl, value };
  }
}

/** What the resources of a response mostly are: looked up once for all of them. */
class OwnType {
  readonly service: DiscoveryService | undefined;
  readonly #typeUrl: string;
  readonly #nameField: number;

  constructor(typeUrl: string) {
    this.#typeUrl = typeUrl;
    this.service = discoveryServiceOf(typeUrl);
    const { typeName, nameField } = this.service ?? NO_NAMES;
    this.#nameField = typeName === '' ? 0 : protoSchema().messageType(typeName).fields[nameField]!.id;
  }

  has(typeUrl: string): boolean {
    if (this.service === undefined) return false;
    return typeUrl === this.#typeUrl || discoveryServiceOf(typeUrl) === this.service;
  }

  /** Without decoding the others; empty where the bytes are none. */
  nameOf(bytes: Uint8Array): string {
    try {
      return textAt(bytes, this.#nameField);
    } catch {
      return '';
    }
  }
}

const NO_NAMES = { typeName: '', nameField: '' };

/** A resource may come in a wrapper that says more of it. */
function stateResource(bytes: Buffer, anys: AnyReader, own: OwnType): RawResource {
  try {
    const any = anys.read(bytes);
    const isWrapper = !own.has(any.type_url) && protoSchema().find(any.type_url)?.type.fullName === `.${RESOURCE}`;
    return isWrapper ? unwrapped(any.value, own) : bare(any, own, '', undefined);
  } catch {
    return NO_RESOURCE;
  }
}

function wrapped(bytes: Buffer, _anys: AnyReader, own: OwnType): RawResource {
  try {
    return unwrapped(bytes, own);
  } catch {
    return NO_RESOURCE;
  }
}

/** @throws for bytes that are no such message. */
function unwrapped(bytes: Uint8Array, own: OwnType): RawResource {
  const type = protoSchema().messageType(RESOURCE);
  const resource = decodeMessage(type, bytes) as unknown as MessageTypes[typeof RESOURCE];
  const { resource: any, name, version, ttl, resource_name: long } = resource;
  const ttlMs = ttl === null ? undefined : durationMs(ttl);
  const said = name || (long?.name ?? '');
  const aliases = resource.aliases.length > 0 && { aliases: resource.aliases };
  if (any === null) return { name: said, ...aliases, version, typeUrl: '', bytes: undefined, ttlMs };
  const found = bare(any, own, version, ttlMs);
  if (said === '') return found;
  // The name outside is what was asked for. Virtual hosts have those of their tables before their own.
  const isOther = found.name !== '' && found.name !== said && own.service?.hasLongNames === false;
  return { ...found, ...aliases, name: said, ...(isOther && { otherName: found.name }) };
}

function bare(any: Any, own: OwnType, version: string, ttlMs: number | undefined): RawResource {
  const { type_url: typeUrl, value: bytes } = any;
  const name = own.has(typeUrl) ? own.nameOf(bytes) : '';
  return { name, version, typeUrl, bytes, ttlMs };
}
