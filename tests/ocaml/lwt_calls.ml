(* Calls each function of Weft_lwt, and prints what it returns: the same with and without a recording.
   SPDX-License-Identifier: ISC *)
open Weft_lwt
open Lwt.Infix

let say format = Printf.printf (format ^^ "\n%!")
let result p = match Lwt.state p with Lwt.Return v -> v | Lwt.Fail e -> "failed: " ^ Printexc.to_string e | Lwt.Sleep -> "pending"
let string p = Lwt.map string_of_int p

exception Refused

(* A pending promise is found by its identity after the collector has moved it. *)
let many () =
  let pairs = List.init 3000 (fun i -> (i, Lwt.wait ())) in
  let garbage = ref [] in
  let sums = List.map (fun (i, (p, _)) -> garbage := List.init 50 (fun x -> x) :: !garbage; Lwt.map (fun v -> v + i) p) pairs in
  Gc.compact ();
  let total = Lwt.map (List.fold_left ( + ) 0) (Lwt.all sums) in
  Gc.full_major ();
  List.iter (fun (_, (_, u)) -> Lwt.wakeup u 1) pairs;
  say "many: %s" (result (string total))

let handlers () =
  let p, u = Trace.named_wait "refused" in
  let caught = Lwt.catch (fun () -> p) (function Refused -> Lwt.return "caught" | e -> Lwt.fail e) in
  let tried = Lwt.try_bind (fun () -> p) Lwt.return (fun _ -> Lwt.return "tried") in
  let last = ref "" in
  let finally = Lwt.finalize (fun () -> p) (fun () -> last := "finally"; Lwt.return_unit) in
  let mapped = Lwt.map (fun _ -> raise Not_found) (Lwt.catch (fun () -> p) (fun _ -> Lwt.return "")) in
  Lwt.wakeup_exn u Refused;
  say "handlers: %s %s %s, %s, %s" (result caught) (result tried) !last (result finally) (result mapped);
  say "now: %s" (result (Lwt.catch (fun () -> raise Refused) (fun _ -> Lwt.return "at once")))

let groups () =
  let a, wake_a = Trace.named_task "a" and b, _ = Trace.named_task "b" in
  let both = Lwt.both a a and joined = Lwt.join [ Lwt.map ignore a; Lwt.return_unit ] in
  let chosen = Lwt.choose [ a; b ] and picked = Lwt.pick [ a; b ] in
  Lwt.wakeup_later wake_a "x";
  say "groups: %s %s %s %s, %s" (result (Lwt.map fst both)) (result (joined >|= fun () -> "joined")) (result chosen) (result picked) (result b)

let objects () =
  let c = Trace.named_condition "news" in
  let first = Lwt_condition.wait c and second = Lwt_condition.wait c in
  Lwt_condition.signal c "1";
  let before = result first ^ result second in
  Lwt_condition.broadcast c "2";
  let plain = Lwt_condition.create () in
  let failed = Lwt_condition.wait plain in
  Lwt_condition.broadcast_exn plain Refused;
  say "condition: %s %s%s %s" before (result first) (result second) (result failed);
  let m = Trace.named_mvar "box" "full" and e = Trace.named_mvar_empty "empty" in
  let put = Lwt_mvar.put m "more" and taken = Lwt_mvar.take e in
  ignore (Lwt_mvar.put e "later");
  let one = result (Lwt_mvar.take m) in
  say "mvar: %s %s %s %s" one (result (put >|= fun () -> "put")) (result (Lwt_mvar.take m)) (result taken)

let threads () =
  let counter = Counter.create ~init:5 ~name:"requests" () in
  Counter.increase counter 3;
  Trace.note_increase "replies" 3;
  Trace.note_increase "replies" 2;
  Trace.note_counter_value "clients" (Counter.value (Counter.make ~name:"clients") + 7);
  Counter.set_value counter 4;
  let log = Buffer.create 10 in
  let is_dropped, drop = Lwt.wait () and is_refused, refuse = Lwt.wait () in
  (* On a busy machine all timers expire before the first round, so the order is given by promises. *)
  Lwt.async_exception_hook := (fun e -> Buffer.add_string log (Printexc.to_string e); Lwt.wakeup_later refuse ());
  Lwt.async (fun () ->
      Trace.label "background";
      Lwt_unix.sleep 0.01 >>= fun () -> is_dropped >>= fun () -> Lwt.fail Refused);
  Lwt.dont_wait (fun () -> Lwt.pause () >>= fun () -> raise Refused) (fun _ -> Buffer.add_string log "dropped, "; Lwt.wakeup_later drop ());
  let cancelled = Lwt_unix.sleep 100. >|= fun () -> "" in
  Lwt.cancel cancelled;
  Trace.note_hiatus Trace.Suspend;
  Trace.note_resume ();
  let slow = (Lwt_unix.sleep 0.05 >>= fun () -> is_refused) >|= fun () -> "slept" in
  Trace.name slow "main";
  Trace.should_resolve slow;
  let slept = Lwt_main.run slow in
  say "threads: %s, %s, %s, %d" slept (Buffer.contents log) (result cancelled) (Counter.value counter)

let syntax () =
  let open Lwt.Syntax in
  let p, u = Lwt.wait () in
  let sum =
    let* a = p and* b = Lwt.return 2 in
    let+ c = p in
    a + b + c
  in
  Lwt.wakeup u 10;
  let module L = Lwt.Let_syntax.Let_syntax in
  say "syntax: %s %s" (result (string sum)) (result (L.bind (L.return 1) ~f:(fun x -> string (Lwt.return x))))

let () =
  Weft.record_gc ();
  List.iter (fun test -> test ()) [ many; handlers; groups; objects; threads; syntax ]
