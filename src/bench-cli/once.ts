// The cases of a suite share one core, made when the first of them opens. A proxy has one per thread too; and with an
// instance of the module for each case, the compiler would see calls of many functions where a program has one, and
// would inline none of them.

export function once<Made>(make: () => Made): () => Made {
  let made: { readonly value: Made } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
