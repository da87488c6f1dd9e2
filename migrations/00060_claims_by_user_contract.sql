-- +goose NO TRANSACTION

-- A claim is looked for among the coupons of its user, which are few and have
-- an index. One by the claims' random ids was a tenth of what a coupon costs in
-- a rush. That nobody is given two coupons for one claim is seen to by
-- claim_counts: whoever writes a user's first coupon of a template inserts its
-- row, and whoever writes another one has locked the template. Programs from
-- before look by the claims' ids alone.
--
-- Everybody queues behind a statement that waits for the table, so it waits for
-- a moment only and then lets the others go on, until nothing is in its way.

-- +goose Up
-- +goose StatementBegin
do $$
declare
    done boolean := false;
begin
    loop
        begin
            set local lock_timeout = '50ms';
            alter table coupons drop constraint if exists coupons_claim_id_key;
            done := true;
        exception when lock_not_available then
            null;
        end;
        commit;
        exit when done;
        perform pg_sleep(1);
        commit;
    end loop;
end $$;
-- +goose StatementEnd
