/** See line-table.mjs. */
export declare function lineTable(
  bundle: readonly {
    readonly file: string;
    readonly map: { readonly sources: readonly string[]; readonly mappings: string };
  }[],
  root: string,
  logging?: readonly string[],
): Buffer;
