#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
#
# A program in Python that sends and claims in transactions of its own, through the ordinary driver of
# its database. It knows nothing of Waybill but what the guide says. One command a line, one answer:
#
#   send DESTINATION TYPE BODY [KEY [HEADERS]] -> the message's id    publish TYPE BODY [KEY [HEADERS]] -> the id
#   claim ID -> 1 or 0    sql TEXT    commit    rollback    many COUNT DESTINATION TYPE
#   keyed COUNT DESTINATION TYPE NAME
#
# keyed: each in a transaction of its own, the body NAME.number, the key a header too: by turns none, one of NAME's
# own, and one that all names have.
#
# Fields are separated by tabs. What fails is answered with "error: ..." and rolled back.
import json
import os
import sys
import uuid

KIND, NAME = sys.argv[1], sys.argv[2]


class PostgreSQL:
    def __init__(self):
        import psycopg2
        self.connection = psycopg2.connect(user=sys.argv[3] if len(sys.argv) > 3 else os.environ['PGUSER'])
        self.cursor = self.connection.cursor()

    def one(self, text, *values):
        self.cursor.execute(text, values)
        return self.cursor.fetchone()[0]

    def send(self, destination, kind, body, key, headers):
        return self.one(f'select "{NAME}_send"(%s, %s, %s, %s, %s)', destination, kind, body, headers, key)

    def publish(self, kind, body, key, headers):
        return self.one(f'select "{NAME}_publish"(%s, %s, %s, %s)', kind, body, headers, key)

    def claim(self, message_id):
        return self.one(f'select "{NAME}_claim"(%s)', message_id)


class MySQL:
    def __init__(self):
        import pymysql
        self.connection = pymysql.connect(
            host=os.environ['MYSQL_HOST'], port=int(os.environ['MYSQL_PORT']), database=os.environ['MYSQL_DATABASE'],
            user=sys.argv[3] if len(sys.argv) > 3 else os.environ['MYSQL_USER'],
            password=sys.argv[4] if len(sys.argv) > 4 else os.environ['MYSQL_PASSWORD'])
        self.cursor = self.connection.cursor()

    def call(self, name, *values):
        places = ', '.join(['%s'] * len(values))
        self.cursor.execute(f'call `{NAME}_{name}`({places}, @answer)', values)
        self.cursor.execute('select @answer')
        return self.cursor.fetchone()[0]

    def send(self, destination, kind, body, key, headers):
        return self.call('send', destination, kind, body, headers, key)

    def publish(self, kind, body, key, headers):
        return self.call('publish', kind, body, headers, key)

    def claim(self, message_id):
        return self.call('claim', message_id)


class SQLite:
    def __init__(self):
        import sqlite3
        self.error = sqlite3.IntegrityError
        self.connection = sqlite3.connect(sys.argv[3], timeout=30)
        self.cursor = self.connection.cursor()

    def send(self, destination, kind, body, key, headers):
        message_id = str(uuid.uuid4())
        self.cursor.execute(f'insert into "{NAME}_send" (id, destination, type, body, headers, key) values (?, ?, ?, ?, ?, ?)',
                            (message_id, destination, kind, body, headers, key))
        return message_id

    def publish(self, kind, body, key, headers):
        message_id = str(uuid.uuid4())
        self.cursor.execute(f'insert into "{NAME}_publish" (id, type, body, headers, key) values (?, ?, ?, ?, ?)',
                            (message_id, kind, body, headers, key))
        return message_id

    def claim(self, message_id):
        try:
            self.cursor.execute(f'insert into "{NAME}_claim" (id) values (?)', (message_id,))
        except self.error as error:
            if 'UNIQUE' not in str(error):
                raise
            return 0
        return 1


def run(database, command, fields):
    if command == 'send':
        destination, kind, body, key, headers = (fields + [None] * 2)[:5]
        return database.send(destination, kind, body.encode(), key or None, headers)
    if command == 'publish':
        kind, body, key, headers = (fields + [None] * 2)[:4]
        return database.publish(kind, body.encode(), key or None, headers)
    if command == 'claim':
        return int(database.claim(fields[0]))
    if command == 'many':
        for number in range(int(fields[0])):
            database.send(fields[1], fields[2], str(number).encode(), None, None)
            database.connection.commit()
    elif command == 'keyed':
        count, destination, kind, name = fields
        for number in range(int(count)):
            key = (None, f'{name}.{number % 7}', f'all-{number % 5}')[number % 3]
            headers = json.dumps({'key': key or ''})
            database.send(destination, kind, f'{name}.{number}'.encode(), key, headers)
            database.connection.commit()
    elif command == 'sql':
        database.cursor.execute(fields[0])
    elif command == 'commit':
        database.connection.commit()
    else:
        database.connection.rollback()
    return 'ok'


def main():
    database = {'pgsql': PostgreSQL, 'mysql': MySQL, 'sqlite': SQLite}[KIND]()
    for line in sys.stdin:
        command, *fields = line.rstrip('\n').split('\t')
        try:
            print(run(database, command, fields), flush=True)
        except Exception as error:  # the test reads what went wrong
            database.connection.rollback()
            print('error:', ' '.join(str(error).split()), flush=True)


main()
