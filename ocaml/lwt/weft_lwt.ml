(* weft_lwt.ml: records the promises of Lwt.

   Each function calls that of Lwt, and records around it.  A promise has an id if it was pending when it became known; the table
   finds it by identity.  Callbacks set the running promise, and restore the one before.
   SPDX-License-Identifier: ISC *)

module Real = Lwt
module Real_condition = Lwt_condition
module Real_mvar = Lwt_mvar
module Real_main = Lwt_main
module Counter = Weft.Counter

let text_of = function Real.Canceled -> "Lwt.Canceled" | e -> Printexc.to_string e
let is_pending p = match Real.state p with Real.Sleep -> true | _ -> false
let is_traced p = Weft.is_on () && is_pending p

(* Records the end of a promise, unless it is recorded otherwise. *)
let watch p id ended =
  let slot = Weft.Table.add p id in
  let finish record () =
    Weft.Table.remove slot;
    if not !ended then begin
      ended := true;
      record ()
    end
  in
  Real.on_any p
    (fun _ -> finish (fun () -> Weft.resolve (Weft.running ()) id) ())
    (fun e -> finish (fun () -> Weft.fail (Weft.running ()) id (text_of e)) ())

let register ?by ?(ended = ref false) kind p =
  let id = Weft.create ?by ~site:(Weft.here ()) kind in
  if id <> 0 then watch p id ended;
  id

(* Returns the id of a pending promise; that of code that is not traced gets one now. *)
let id_of p = match Weft.Table.find p with 0 -> register Weft.Wait p | id -> id

(* Records how the code of a promise ended: with a result, or by passing on another promise. *)
let finish id ended result =
  match Real.state result with
  | Real.Return _ ->
    ended := true;
    Weft.resolve id id
  | Real.Fail e ->
    ended := true;
    Weft.fail id id (text_of e)
  | Real.Sleep -> (
    match id_of result with
    | 0 -> ()
    | other ->
      ended := true;
      Weft.become id other)

let within before f =
  match f () with
  | result ->
    Weft.run before;
    result
  | exception e ->
    Weft.run before;
    raise e

(* Runs the code behind a wait as a promise, which reads its input. *)
let continue id site input ended f v =
  if id = 0 then f v
  else
    within (Weft.running ()) (fun () ->
        Weft.read id input;
        let result = Weft.in_callback site (fun () -> f v) in
        finish id ended result;
        result)

let bind_as kind t f =
  let input = id_of t in
  let site = Weft.here () in
  let id = Weft.create ~site kind and ended = ref false in
  let result = Real.bind t (continue id site input ended f) in
  if id <> 0 then begin
    watch result id ended;
    Weft.await id input
  end;
  result

(* Records a promise that `make` makes of code and its handlers, which run as that promise once it exists. *)
let attempt code make =
  let site = Weft.here () in
  let inner = ref 0 and id = ref 0 and ended = ref false in
  let start () =
    let p = code () in
    if is_pending p then inner := id_of p;
    p
  in
  let result = make start (fun () -> (!id, site, !inner, ended)) in
  if is_pending result && !inner <> 0 then begin
    id := Weft.create ~site Weft.Try;
    if !id <> 0 then begin
      watch result !id ended;
      Weft.await !id !inner
    end
  end;
  result

let handle state f v =
  let id, site, inner, ended = state () in
  continue id site inner ended f v

let gather kind result inputs =
  if is_traced result then begin
    let inputs = List.filter_map (fun input -> input ()) inputs in
    let id = register kind result in
    if id <> 0 then List.iter (Weft.await id) inputs
  end;
  result

let input p () = if is_pending p then Some (id_of p) else None
let inputs ps = List.map (fun p -> input p) ps

module Lwt = struct
  include Real

  let wait () =
    let ((p, _) as both) = Real.wait () in
    if Weft.is_on () then ignore (register Weft.Wait p);
    both

  let task () =
    let ((p, _) as both) = Real.task () in
    if Weft.is_on () then ignore (register Weft.Task p);
    both

  let bind t f = if is_traced t then bind_as Weft.Bind t f else Real.bind t f

  let map f t =
    if not (is_traced t) then Real.map f t
    else bind_as Weft.Map t (fun v -> match f v with v -> Real.return v | exception e -> Real.fail e)

  let catch code handler =
    if not (Weft.is_on ()) then Real.catch code handler
    else attempt code (fun start state -> Real.catch start (handle state handler))

  let try_bind code f handler =
    if not (Weft.is_on ()) then Real.try_bind code f handler
    else attempt code (fun start state -> Real.try_bind start (handle state f) (handle state handler))

  let finalize code last =
    try_bind code
      (fun v -> bind (last ()) (fun () -> Real.return v))
      (fun e -> bind (last ()) (fun () -> Real.fail e))

  (* Runs code that nothing waits for as a promise of its own. *)
  let detached ~is_handled code site () =
    let id = Weft.create ~site Weft.Async in
    if id = 0 then code ()
    else
      within (Weft.running ()) (fun () ->
          Weft.run id;
          let p = Weft.in_callback site code in
          if is_pending p then Weft.await id (id_of p);
          Real.on_any p
            (fun _ -> Weft.resolve (Weft.running ()) id)
            (fun e ->
              if is_handled then Weft.resolve (Weft.running ()) id else Weft.fail (Weft.running ()) id (text_of e));
          p)

  let around ~is_handled code = if Weft.is_on () then detached ~is_handled code (Weft.here ()) else code
  let async code = Real.async (around ~is_handled:false code)
  let dont_wait code handler = Real.dont_wait (around ~is_handled:true code) handler
  let join ps = gather Weft.Join (Real.join ps) (inputs ps)
  let all ps = gather Weft.Join (Real.all ps) (inputs ps)
  let both a b = gather Weft.Join (Real.both a b) [ input a; input b ]
  let choose ps = gather Weft.Choose (Real.choose ps) (inputs ps)
  let nchoose ps = gather Weft.Choose (Real.nchoose ps) (inputs ps)
  let pick ps = gather Weft.Pick (Real.pick ps) (inputs ps)
  let npick ps = gather Weft.Pick (Real.npick ps) (inputs ps)
  let ( >>= ) t f = bind t f
  let ( =<< ) f t = bind t f
  let ( >|= ) t f = map f t
  let ( =|< ) f t = map f t
  let ( <&> ) a b = join [ a; b ]
  let ( <?> ) a b = choose [ a; b ]

  module type Let_syntax_type = sig
    val return : 'a -> 'a t
    val map : 'a t -> f:('a -> 'b) -> 'b t
    val bind : 'a t -> f:('a -> 'b t) -> 'b t
    val both : 'a t -> 'b t -> ('a * 'b) t

    module Open_on_rhs : sig end
  end

  module Traced_syntax = struct
    let return = Real.return
    let map t ~f:g = map g t
    let bind t ~f:g = bind t g
    let both = both

    module Open_on_rhs = struct end
  end

  module Infix = struct
    let ( >>= ) = ( >>= )
    let ( =<< ) = ( =<< )
    let ( >|= ) = ( >|= )
    let ( =|< ) = ( =|< )
    let ( <&> ) = ( <&> )
    let ( <?> ) = ( <?> )

    module Let_syntax = Traced_syntax
  end

  module Let_syntax = struct
    module Let_syntax = Traced_syntax
  end

  module Syntax = struct
    include Real.Syntax

    let ( let* ) = bind
    let ( and* ) = both
    let ( let+ ) t f = map f t
    let ( and+ ) = both
  end
end

let named make name =
  let ((p, _) as both) = make () in
  if is_traced p then Weft.label (id_of p) name;
  both

(* ---- Conditions and mvars ---- *)

(* Waiters of a condition, in the order in which they are woken: id, and whether the end is recorded. *)
let waiters : (Weft.id, (Weft.id * bool ref) Queue.t) Hashtbl.t = Hashtbl.create 16
let names : (Weft.id, string) Hashtbl.t = Hashtbl.create 16

(* Returns the promise that stands for an object, or 0.  It lives as long as the object. *)
let object_of o =
  if not (Weft.is_on ()) then 0
  else
    match Weft.Table.find o with
    | 0 ->
      let id = Weft.create ~site:(Weft.here ()) Weft.Condition in
      if id <> 0 then begin
        ignore (Weft.Table.add o id);
        Hashtbl.replace waiters id (Queue.create ());
        Gc.finalise_last
          (fun () ->
            Hashtbl.remove waiters id;
            Hashtbl.remove names id)
          o
      end;
      id
    | id -> id

let name_object o name =
  let id = object_of o in
  if id <> 0 then begin
    Weft.label id name;
    Hashtbl.replace names id name
  end;
  o

(* Appends a waiter, and forgets those at the front that were cancelled. *)
let rec enqueue waiter queue =
  match Queue.peek_opt queue with
  | Some (_, { contents = true }) ->
    ignore (Queue.take queue);
    enqueue waiter queue
  | _ -> Queue.add waiter queue

(* Records a promise that waits for an object: the object creates it.  is_queued: wake ends it. *)
let wait_for ~is_queued id p =
  if id <> 0 && is_pending p then begin
    let ended = ref false in
    let task = register ~by:id ~ended Weft.Task p in
    if task <> 0 then begin
      Option.iter (Weft.label task) (Hashtbl.find_opt names id);
      if is_queued then Option.iter (enqueue (task, ended)) (Hashtbl.find_opt waiters id)
    end
  end;
  p

(* Records that the object wakes its first waiter, or all; `act` does it. *)
let wake id ~all act =
  if id = 0 then act ()
  else
    within (Weft.running ()) (fun () ->
        Weft.signal (Weft.running ()) id;
        let queue = Option.value (Hashtbl.find_opt waiters id) ~default:(Queue.create ()) in
        let rec take () =
          match Queue.take_opt queue with
          | None -> ()
          | Some (_, { contents = true }) -> take ()
          | Some (task, ended) ->
            ended := true;
            Weft.resolve id task;
            if all then take ()
        in
        take ();
        act ())

module Lwt_condition = struct
  include Real_condition

  let create () =
    let c = Real_condition.create () in
    ignore (object_of c);
    c

  let wait ?mutex c = wait_for ~is_queued:true (object_of c) (Real_condition.wait ?mutex c)
  let signal c v = wake (object_of c) ~all:false (fun () -> Real_condition.signal c v)
  let broadcast c v = wake (object_of c) ~all:true (fun () -> Real_condition.broadcast c v)
  let broadcast_exn c e = wake (object_of c) ~all:true (fun () -> Real_condition.broadcast_exn c e)
end

module Lwt_mvar = struct
  include Real_mvar

  let take m = wait_for ~is_queued:false (object_of m) (Real_mvar.take m)
  let put m v = wait_for ~is_queued:false (object_of m) (Real_mvar.put m v)
end

(* ---- The scheduler ---- *)

module Lwt_main = struct
  include Real_main

  let sleeps = lazy (ignore (Real_main.Enter_iter_hooks.add_first (fun () -> if Weft.is_on () then Weft.idle 0)))

  let run p =
    if Weft.is_on () then Lazy.force sleeps;
    Real_main.run p
end

module Trace = struct
  type hiatus_reason = Wait_for_work | Suspend | Hibernate

  let label text = if Weft.is_on () && Weft.running () > 0 then Weft.label (Weft.running ()) text
  let name p text = if is_traced p then Weft.label (id_of p) text
  let named_wait text = named Lwt.wait text
  let named_task text = named Lwt.task text
  let named_condition text = name_object (Real_condition.create ()) text
  let named_mvar text v = name_object (Real_mvar.create v) text
  let named_mvar_empty text = name_object (Real_mvar.create_empty ()) text
  let should_resolve p = if is_traced p then Weft.should_resolve (id_of p)

  let counters : (string, Weft.Counter.t) Hashtbl.t = Hashtbl.create 16

  let counter_of name =
    match Hashtbl.find_opt counters name with
    | Some counter -> counter
    | None ->
      let counter = Weft.Counter.make ~name in
      Hashtbl.add counters name counter;
      counter

  let note_increase name change = Weft.Counter.increase (counter_of name) change
  let note_counter_value name value = Weft.Counter.set_value (counter_of name) value
  let note_hiatus why = if Weft.is_on () then Weft.idle (match why with Wait_for_work -> 0 | Suspend -> 1 | Hibernate -> 2)
  let note_resume () = if Weft.is_on () then Weft.resume Weft.system
end
