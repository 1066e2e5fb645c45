/** See line-table.mjs. */
export declare function lineTable(
  map: { readonly sources: readonly string[]; readonly mappings: string },
  folder: string,
  root: string,
): Buffer;
