(** Records a program for weft: promises, labels, counters and pauses of the garbage collector.

    Nothing is recorded unless the environment asks for it: [WEFT_TRACE=run.weft ./program], or [weft record].  A call then
    costs some tens of nanoseconds, otherwise a load and a branch.  Programs that use Lwt rather use {!Weft_lwt}. *)

type id = int
(** A promise of the trace.  0 is no promise, -1 is the system. *)

type site
(** A line of the source. *)

(** Kinds of promises. *)
type kind =
  | Wait
  | Task
  | Bind
  | Try
  | Choose
  | Pick
  | Join
  | Map
  | Condition
  | Async

val is_on : unit -> bool
(** Returns whether something is recorded now. *)

val system : id
val running : unit -> id
(** Returns the promise whose code runs. *)

val here : unit -> site
(** Returns the line that called the innermost library of weft, if the program has debug information ([-g]). *)

val in_callback : site -> (unit -> 'a) -> 'a
(** Runs a callback that was given to a library at this site. *)

val create : ?by:id -> ?site:site -> kind -> id
(** Creates a promise, by the running one.  Returns 0 while nothing records. *)

val label : id -> string -> unit
(** Names a promise, or says how far it is. *)

val note : id -> string -> unit
val should_resolve : id -> unit

val await : id -> id -> unit
(** [await p q]: p waits for q. *)

val read : id -> id -> unit
(** [read p q]: p has got the result of q, and runs. *)

val read_later : id -> id -> unit
val resolve : id -> id -> unit
(** [resolve by p]: by has ended p with a value. *)

val fail : id -> id -> string -> unit
val become : id -> id -> unit
(** [become p q]: p and q are one promise from now on. *)

val signal : id -> id -> unit
(** [signal by p]: by has sent p a message, and p runs. *)

val run : id -> unit
val idle : int -> unit
(** The program sleeps: 0 waits for events, 1 is suspended, 2 hibernates. *)

val resume : id -> unit

(** Numbers over time. *)
module Counter : sig
  type t

  val create : ?init:int -> name:string -> unit -> t
  val make : name:string -> t
  val increase : t -> int -> unit
  val set_value : t -> int -> unit
  val value : t -> int
end

val record_gc : unit -> unit
(** Records each collection as a pause, from now on. *)

(** Ids by physical identity, without keeping the values alive. *)
module Table : sig
  val find : 'a -> id
  (** Returns 0 for an unknown value.  Values are blocks of the heap. *)

  val add : 'a -> id -> int
  (** Returns a handle for [remove]. *)

  val remove : int -> unit
end
