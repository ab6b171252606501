package io.deltafast.spark;

/** How Spark's column vectors store values of a type. */
final class PhysicalKind {
  static final int STRUCT = 0;
  static final int BOOLEAN = 1;
  static final int BYTE = 2;
  static final int SHORT = 3;
  static final int INT = 4;
  static final int LONG = 5;
  static final int FLOAT = 6;
  static final int DOUBLE = 7;
  static final int BYTES = 8;
  static final int ARRAY = 9;

  private PhysicalKind() {}

  /** The kind of a type; -1 if that is unknown. */
  static int of(org.apache.spark.sql.types.DataType type) {
    if (type instanceof org.apache.spark.sql.types.DecimalType) {
      return org.apache.spark.sql.types.DecimalType.is32BitDecimalType(type)
          ? INT
          : org.apache.spark.sql.types.DecimalType.is64BitDecimalType(type) ? LONG : BYTES;
    }
    String name =
        org.apache.spark.sql.catalyst.types.PhysicalDataType$.MODULE$
            .apply(type)
            .getClass()
            .getSimpleName();
    return name.startsWith("PhysicalStruct")
            || name.startsWith("PhysicalVariant")
            || name.startsWith("PhysicalCalendarInterval")
        ? STRUCT
        : name.startsWith("PhysicalBoolean")
            ? BOOLEAN
            : name.startsWith("PhysicalByte")
                ? BYTE
                : name.startsWith("PhysicalShort")
                    ? SHORT
                    : name.startsWith("PhysicalInteger")
                        ? INT
                        : name.startsWith("PhysicalLong")
                            ? LONG
                            : name.startsWith("PhysicalFloat")
                                ? FLOAT
                                : name.startsWith("PhysicalDouble")
                                    ? DOUBLE
                                    : name.startsWith("PhysicalString")
                                            || name.startsWith("PhysicalBinary")
                                        ? BYTES
                                        : name.startsWith("PhysicalArray")
                                                || name.startsWith("PhysicalMap")
                                            ? ARRAY
                                            : -1;
  }
}
