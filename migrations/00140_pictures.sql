-- The pictures that staff upload for the messages of a shop. The address of a picture has the
-- SHA-256 of its content, so that a picture never changes.

-- +goose Up
create table pictures (
    id          bigint generated always as identity primary key,
    shop_number bigint not null,
    hash        text not null,      -- SHA-256 of the stored file, in hexadecimal digits
    type        text not null check (type in ('jpeg', 'png')),
    width       integer not null,
    height      integer not null,
    bytes       integer not null,
    name        text not null,      -- the name of the file that was uploaded
    alt         text not null,      -- what the picture shows
    created_by  text not null,
    created_at  timestamptz not null default clock_timestamp(),
    unique (shop_number, hash)
);
create index pictures_newest on pictures (shop_number, id desc);

-- The files, where no S3-compatible store has them.
create table picture_files (
    shop_number bigint not null,
    hash        text not null,
    content     bytea not null,
    primary key (shop_number, hash)
);
