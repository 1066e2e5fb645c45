// What is said with each call of a gRPC service: GrpcService.initial_metadata.

import { fieldPath, itemPath } from '../source/field-path.ts';
import type { FaultSink } from './fault-sink.ts';
import type { GrpcService } from './messages.ts';

export interface MetadataField {
  /** In lower case. */
  readonly key: string;
  readonly value: string;
}

/** As HTTP/2 has names of fields; those of gRPC itself are the library's. */
const METADATA_KEY = /^(?!grpc-)[0-9a-z_.-]+$/;
const METADATA_VALUE = /^[\x20-\x7e]*$/;

/** @param at path of the service. */
export function initialMetadata(service: GrpcService, at: string, faults: FaultSink): readonly MetadataField[] {
  const list = fieldPath(at, 'initial_metadata');
  return service.initial_metadata.map(({ key, value }, index) => {
    const name = key.toLowerCase();
    const place = itemPath(list, index);
    if (!METADATA_KEY.test(name))
      faults.error(fieldPath(place, 'key'), `"${key}" is no name of metadata that can be set`);
    if (!METADATA_VALUE.test(value)) faults.error(fieldPath(place, 'value'), 'has characters beyond printable ASCII');
    return { key: name, value };
  });
}
