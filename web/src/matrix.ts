// Rows × columns of numbers, flat; means, rows and blocks of them.

export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: ArrayLike<number>;
}

export function at(matrix: Matrix, row: number, column: number): number {
  return matrix.values[row * matrix.columns + column] ?? 0;
}

export function rowOf(matrix: Matrix, row: number): number[] {
  return Array.from({ length: matrix.columns }, (_, column) => at(matrix, row, column));
}

export function columnOf(matrix: Matrix, column: number): number[] {
  return Array.from({ length: matrix.rows }, (_, row) => at(matrix, row, column));
}

export function fromLists(lists: readonly (readonly number[])[]): Matrix {
  const columns = lists[0]?.length ?? 0;
  const values = new Float64Array(lists.length * columns);
  lists.forEach((list, row) => list.forEach((value, column) => (values[row * columns + column] = value)));
  return { rows: lists.length, columns, values };
}

/** The mean of matrices of one shape. */
export function mean(matrices: readonly Matrix[]): Matrix {
  const first = matrices[0];
  if (!first) return { rows: 0, columns: 0, values: [] };
  const values = new Float64Array(first.rows * first.columns);
  for (const matrix of matrices) for (let i = 0; i < values.length; i++) values[i]! += matrix.values[i] ?? 0;
  for (let i = 0; i < values.length; i++) values[i]! /= matrices.length;
  return { rows: first.rows, columns: first.columns, values };
}

/** Rows and columns from one corner up to, and without, another. */
export function block(matrix: Matrix, rows: [number, number], columns: [number, number]): Matrix {
  const height = Math.max(0, Math.min(rows[1], matrix.rows) - rows[0]);
  const width = Math.max(0, Math.min(columns[1], matrix.columns) - columns[0]);
  const values = new Float64Array(height * width);
  for (let row = 0; row < height; row++)
    for (let column = 0; column < width; column++)
      values[row * width + column] = at(matrix, rows[0] + row, columns[0] + column);
  return { rows: height, columns: width, values };
}

export function largest(matrix: Matrix): number {
  let found = 0;
  for (let i = 0; i < matrix.values.length; i++) found = Math.max(found, Math.abs(matrix.values[i] ?? 0));
  return found;
}
