package io.deltafast.spark;

/**
 * Selects the files of a query; Python implements it.
 *
 * <p>Filters are SQL, each preceded by its length and a colon; those that have no SQL form are left
 * out. An index calls the methods one at a time.
 */
public interface FilePlanner {
  /** The answer of {@link #newerVersion} if there is no newer version. */
  long UNCHANGED = -1;

  /** The answer of {@link #newerVersion} if it failed: see {@link #failure}. */
  long FAILED = -2;

  /**
   * Which of the listed files can match filters: a character for each, `0` if it cannot. Empty if
   * that is unknown.
   */
  String matchingFiles(String filters);

  /**
   * Which of the listed files newer versions have removed: a character for each, `0` if it is not
   * removed. Empty if the list is recent. A planner that lists files for each query only tells
   * whether to list them again, by a string that is not empty.
   */
  String removedFiles();

  /** Lists the files that can match filters as an Arrow stream in a file; null if it failed. */
  String listFiles(String filters);

  /** The number of rows of all files; -1 if unknown. */
  long rowCount();

  /** Updates to the newest version; within a query, `execution` is its id, the version is kept. */
  long newerVersion(String execution);

  /** The Arrow stream with the files of the newer version; empty to list them for each query. */
  String newerFiles();

  /** The Arrow stream with the deletion vectors of the newer version; empty if it has none. */
  String newerVectors();

  /** The bytes of the files of the newer version. */
  long newerSize();

  /** The id of the table; empty if the index has only some of the files of the version. */
  String tableId();

  /** Why the last call failed. */
  String failure();
}
