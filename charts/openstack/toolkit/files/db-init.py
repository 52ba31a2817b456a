"""Make a service's databases, users and grants. Repeating it changes nothing.

ROOT_DB_CONNECTION and those that begin with DB_CONNECTION are SQLAlchemy URLs: who may create, and what is to be there.
"""
import os
import urllib.parse

import pymysql

ACCESS_DENIED = (1044, 1045, 1698)


def parse(url):
    parts = urllib.parse.urlsplit(url)
    return {
        "host": parts.hostname,
        "port": parts.port or 3306,
        "user": urllib.parse.unquote(parts.username),
        "password": urllib.parse.unquote(parts.password),
    }, parts.path.lstrip("/")


def works(account, database):
    """Can the account use the database? A password that works is never set again."""
    try:
        pymysql.connect(database=database, **account).close()
    except pymysql.err.OperationalError as error:
        if error.args[0] in ACCESS_DENIED:
            return False
        raise
    return True


def exists(cursor, query, *args):
    cursor.execute(query, args)
    return cursor.fetchone() is not None


def create_database(cursor, database):
    if exists(cursor, "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", database):
        return False
    cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{database}` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    return True


def grant(cursor, account, database):
    name = (account["user"], "%")
    cursor.execute("CREATE USER IF NOT EXISTS %s@%s", name)
    cursor.execute("ALTER USER %s@%s IDENTIFIED BY %s", (*name, account["password"]))
    # In a grant, _ and % of a database's name are wildcards.
    pattern = database.replace("_", r"\_").replace("%", r"\%")
    cursor.execute(f"GRANT ALL PRIVILEGES ON `{pattern.replace('%', '%%')}`.* TO %s@%s", name)


def provide(cursor, account, database):
    done = []
    if create_database(cursor, database):
        done.append("database created")
    if not works(account, database):
        grant(cursor, account, database)
        done.append(f"user {account['user']} may use it")
    print(f"database {database}: {', '.join(done) or 'nothing to do'}")


def main():
    root, _ = parse(os.environ["ROOT_DB_CONNECTION"])
    wanted = [url for name, url in sorted(os.environ.items()) if name.startswith("DB_CONNECTION")]
    with pymysql.connect(**root) as connection, connection.cursor() as cursor:
        for url in wanted:
            provide(cursor, *parse(url))


if __name__ == "__main__":
    main()
