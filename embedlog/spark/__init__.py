"""embedlog on Apache Spark. Needs PySpark, which nothing outside this package loads."""
