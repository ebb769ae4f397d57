create table if not exists @TABLE@ (message_id bytea not null, body bytea not null);
