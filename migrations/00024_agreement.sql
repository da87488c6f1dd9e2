-- Several statements in one round trip of which a later one may only count if
-- an earlier one found what was expected.

-- +goose Up

-- Ends the transaction with SQLSTATE DB001 unless what was expected holds.
-- +goose StatementBegin
create function expect(holds boolean) returns void language plpgsql volatile as $$
begin
    if holds is not true then
        raise exception 'something has changed since it was read' using errcode = 'DB001';
    end if;
end
$$;
-- +goose StatementEnd
