-- +goose Up

-- A shop that is here may be changed, although another cell had it when its worker told its shops last.
-- +goose StatementBegin
create or replace function refuse_moved_shop() returns trigger language plpgsql as $$
begin
    if exists (select from moves where shop_number = new.number and state in ('emptied', 'left'))
        or exists (select from shops_elsewhere e where e.shop_number = new.number
            and not exists (select from moves m where m.shop_number = new.number and m.state = 'arriving')
            and not exists (select from shops s where s.number = new.number)) then
        raise exception 'the shop has moved to another database' using errcode = 'DB003';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
