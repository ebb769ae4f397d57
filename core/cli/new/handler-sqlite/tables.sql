create table if not exists @TABLE@ (message_id text not null, body blob not null);
