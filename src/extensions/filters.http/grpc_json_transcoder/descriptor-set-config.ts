// A FileDescriptorSet, as protoc writes it: its services, and what google.api.http says of their methods. Main thread.

import { createRequire } from 'node:module';
import type Protobuf from 'protobufjs/light.js';

type Light = typeof Protobuf & { readonly Root: { readonly fromDescriptor: FromDescriptor } };
type FromDescriptor = (bytes: Uint8Array, options: { readonly keepCase: boolean }) => Protobuf.Root;

/** The parts of descriptors that methods are described by; google.api.http is an extension of their options. */
const SCHEMA = {
  nested: {
    Set: { fields: { file: { rule: 'repeated', type: 'File', id: 1 } } },
    File: { fields: { package: { type: 'string', id: 2 }, service: { rule: 'repeated', type: 'Service', id: 6 } } },
    Service: { fields: { name: { type: 'string', id: 1 }, method: { rule: 'repeated', type: 'Method', id: 2 } } },
    Method: {
      fields: {
        name: { type: 'string', id: 1 },
        inputType: { type: 'string', id: 2 },
        outputType: { type: 'string', id: 3 },
        options: { type: 'Options', id: 4 },
        clientStreaming: { type: 'bool', id: 5 },
        serverStreaming: { type: 'bool', id: 6 },
      },
    },
    Options: { fields: { http: { type: 'Rule', id: 72_295_728 } } },
    Rule: {
      fields: {
        get: { type: 'string', id: 2 },
        put: { type: 'string', id: 3 },
        post: { type: 'string', id: 4 },
        delete: { type: 'string', id: 5 },
        patch: { type: 'string', id: 6 },
        body: { type: 'string', id: 7 },
        custom: { type: 'Custom', id: 8 },
        responseBody: { type: 'string', id: 12 },
        additionalBindings: { rule: 'repeated', type: 'Rule', id: 11 },
      },
    },
    Custom: { fields: { kind: { type: 'string', id: 1 }, path: { type: 'string', id: 2 } } },
  },
} as const;

export interface HttpRule {
  readonly get?: string;
  readonly put?: string;
  readonly post?: string;
  readonly delete?: string;
  readonly patch?: string;
  readonly custom?: { readonly kind: string; readonly path: string };
  readonly body: string;
  readonly responseBody: string;
  readonly additionalBindings: readonly HttpRule[];
}

export interface MethodDescriptor {
  readonly name: string;
  /** With a dot before the package. */
  readonly inputType: string;
  readonly outputType: string;
  readonly options: { readonly http: HttpRule | null } | null;
  readonly clientStreaming: boolean;
  readonly serverStreaming: boolean;
}

export interface DescriptorSet {
  /** By full name. */
  readonly services: ReadonlyMap<string, readonly MethodDescriptor[]>;
  /** Whether a message has a field, from it inwards; messages of the fields in between included. */
  hasField(message: string, path: readonly string[]): boolean;
}

/** @throws Error for bytes that are none, or where something that is used is missing. */
export function readDescriptorSet(bytes: Uint8Array): DescriptorSet {
  const { Root, Type } = createRequire(import.meta.url)('protobufjs/light.js') as Light;
  const { FileDescriptorSet } = createRequire(import.meta.url)('protobufjs/ext/descriptor.js') as {
    readonly FileDescriptorSet: Protobuf.Type;
  };
  // What is no descriptor set may decode as an empty one.
  const set = FileDescriptorSet.decode(bytes) as unknown as { readonly file?: readonly unknown[] };
  if ((set.file?.length ?? 0) === 0) throw new Error('holds no file of definitions');
  const messages = Root.fromDescriptor(bytes, { keepCase: true }).resolveAll();
  const own = Root.fromJSON(SCHEMA as unknown as Protobuf.INamespace);
  const { file: files } = own.lookupType('Set').decode(bytes) as unknown as {
    readonly file: readonly {
      readonly package: string;
      readonly service: readonly { readonly name: string; readonly method: readonly MethodDescriptor[] }[];
    }[];
  };
  const services = files.flatMap(({ package: name, service }) =>
    service.map((one) => [name === '' ? one.name : `${name}.${one.name}`, one.method] as const),
  );
  return {
    services: new Map(services),
    hasField(message, path) {
      let type: Protobuf.Type | null = messages.lookupType(message);
      for (const name of path) {
        const field: Protobuf.Field | undefined = type?.fields[name];
        if (field === undefined) return false;
        type = field.resolvedType instanceof Type ? field.resolvedType : null;
      }
      return true;
    },
  };
}
